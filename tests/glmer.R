# lme4's glmer (Laplace, nAGQ = 1) on predictions written by `cohort predict`, and how far cohort is from it:
#
#     Rscript tests/glmer.R PREDICTIONS.csv EXPORTED HIDDEN.csv
#
# EXPORTED is the directory of `cohort export`, HIDDEN.csv the students' effects. One line of words and numbers.
suppressMessages(library(lme4))
args <- commandArgs(TRUE)
answers <- read.csv(args[1], colClasses = c(student = "character", item = "character"))
answers <- answers[!is.na(answers$outcome), ]
time <- system.time(model <- glmer(outcome ~ 1 + (1 | student) + (1 | item), answers, family = binomial, nAGQ = 1))
spreads <- read.csv(file.path(args[2], "table_spreads.csv"), row.names = 1)
fixed <- read.csv(file.path(args[2], "table_fixed.csv"), row.names = 1)
items <- read.csv(file.path(args[2], "table_items.csv"), colClasses = c(item = "character"), check.names = FALSE)
names(items)[1:3] <- c("name", "effect", "error")
students <- read.csv(args[3], colClasses = c(student = "character"))
effects <- ranef(model, condVar = TRUE)
theirs <- as.data.frame(VarCorr(model))
variance <- function(factor) abs(spreads[factor, "variance"] / theirs$vcov[theirs$grp == factor] - 1)
rows <- match(rownames(effects$item), items$name)
errors <- sqrt(attr(effects$item, "postVar")[1, 1, ])
cat(sprintf(paste("seconds %.2f variance %.2e intercept %.2e intercept_error %.2e items %.8f students %.8f",
                  "item_errors %.2e\n"),
            time[["elapsed"]], max(variance("student"), variance("item")),
            abs(fixed["intercept", "estimate"] - fixef(model)[[1]]),
            abs(fixed["intercept", "error"] / sqrt(vcov(model)[1, 1]) - 1),
            cor(effects$item[, 1], items$effect[rows]),
            cor(effects$student[, 1], students[match(rownames(effects$student), students$student), 2]),
            max(abs(items$error[rows] / errors - 1))))
