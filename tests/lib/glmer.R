# Fits lme4's glmer (Laplace, nAGQ = 1) to the answers in predictions written by `cohort predict`, and prints how far
# cohort is from it, as one line of names and numbers:
#
#     Rscript tests/lib/glmer.R PREDICTIONS.csv EXPORTED HIDDEN.csv [ANSWERS.csv]
#
# EXPORTED is the directory written by `cohort export`, HIDDEN.csv holds the students' effects. ANSWERS.csv, with columns
# who, what and teacher, adds effects of teachers.
suppressMessages(library(lme4))
args <- commandArgs(TRUE)
answers <- read.csv(args[1], colClasses = c(student = "character", item = "character"))
answers <- answers[!is.na(answers$outcome), ]
formula <- outcome ~ 1 + (1 | student) + (1 | item)
if (length(args) > 3) {
    taught <- read.csv(args[4], colClasses = "character")
    answers$teacher <- taught$teacher[match(paste(answers$student, answers$item), paste(taught$who, taught$what))]
    formula <- outcome ~ 1 + (1 | student) + (1 | item) + (1 | teacher)
}
time <- system.time(model <- glmer(formula, answers, family = binomial, nAGQ = 1))
spreads <- read.csv(file.path(args[2], "table_spreads.csv"), row.names = 1)
fixed <- read.csv(file.path(args[2], "table_fixed.csv"), row.names = 1)
items <- read.csv(file.path(args[2], "table_items.csv"), colClasses = c(item = "character"))
students <- read.csv(args[3], colClasses = c(student = "character"))
effects <- ranef(model, condVar = TRUE)
theirs <- as.data.frame(VarCorr(model))
variance <- function(factor) abs(spreads[factor, "variance"] / theirs$vcov[theirs$grp == factor] - 1)
rows <- match(rownames(effects$item), items$item)
errors <- sqrt(attr(effects$item, "postVar")[1, 1, ])
fit <- read.csv(file.path(args[2], "table_fit.csv"))
cat(sprintf(paste("seconds %.2f variance %.2e intercept %.2e intercept_error %.2e items %.8f students %.8f",
                  "item_errors %.2e deviance %.2e aic %.2e bic %.2e parameters %d"),
            time[["elapsed"]], max(sapply(theirs$grp, variance)),
            abs(fixed["intercept", "estimate"] - fixef(model)[[1]]),
            abs(fixed["intercept", "error"] / sqrt(vcov(model)[1, 1]) - 1),
            cor(effects$item[, 1], items$item_effect[rows]),
            cor(effects$student[, 1], students[match(rownames(effects$student), students$student), 2]),
            max(abs(items$item_error[rows] / errors - 1)), abs(fit$deviance + 2 * as.numeric(logLik(model))),
            abs(fit$aic - AIC(model)), abs(fit$bic - BIC(model)),
            as.integer(fit$parameters - attr(logLik(model), "df"))))
if (length(args) > 3) {
    levels <- read.csv(file.path(args[2], "table_levels.csv"), colClasses = c(level = "character"))
    rows <- match(paste("teacher", rownames(effects$teacher)), levels$level)
    cat(sprintf(" teachers %.8f", cor(effects$teacher[, 1], levels$effect[rows])))
}
cat("\n")
