# cohort: `make help` lists what can be made.
#
# Every variant has its own directory: build (release), build/debug, build/double, build/sanitize, build/clang.
# Libraries are found by tests/setup.sh (pkg-config, or HDF5_CFLAGS= HDF5_LIBS= and the like) for the MPI that CC
# belongs to; the targets that do all the set-up themselves call it and then make again, since only then can they
# be found.
VARIANT ?= $(if $(filter double,$(REAL)),double,release)
BUILD ?= build$(if $(filter-out release,$(VARIANT)),/$(VARIANT))
# make splits names at spaces, and % stands for any name in its rules.
ifneq ($(words x$(CURDIR)x)$(findstring %,$(CURDIR)),1)
$(error make cannot work in '$(CURDIR)', whose path has a space or %; move the checkout)
endif
# make or the shell reads these as something else. The path of the checkout is in no rule.
HASH := \#
PAREN := ( )
ODD := ' " ` $$ $(HASH) % : ; & | < > * ? [ ] { } \ ! = $(PAREN)
OWN := $(subst $(CURDIR)/,,$(BUILD))
ifneq ($(words x$(OWN)x)$(strip $(foreach c,$(ODD),$(findstring $(c),$(OWN))) $(filter -% ~%,$(OWN))),1)
$(error make cannot build in BUILD='$(BUILD)', which has a space or a special character; choose another directory)
endif
# `make clean` removes BUILD.
ifneq ($(strip $(if $(OWN),,empty) $(filter /,$(abspath $(OWN))) $(filter $(abspath $(OWN))/%,$(CURDIR)/)),)
$(error BUILD='$(BUILD)' holds more than what is built; choose another directory, such as BUILD=build)
endif
# One spelling, whatever the user's: the files of dependencies hold it.
override BUILD := $(patsubst $(CURDIR)/%,%,$(abspath $(BUILD)))
ifneq ($(strip $(foreach folder,.git .ci data_tools include jobs src tests,$(filter $(folder) $(folder)/%,$(BUILD)))),)
$(error BUILD='$(BUILD)' holds the source; choose another directory, such as BUILD=build)
endif
PREFIX ?= /usr/local
# Where `make install` puts things, as a word for the shell.
ROOT = '$(subst ','\'',$(DESTDIR)$(PREFIX))'
WERROR ?= -Werror
CC = mpicc

OPTIMIZE_release = -O3
OPTIMIZE_debug = -O1
OPTIMIZE_double = -O3
OPTIMIZE_sanitize = -O1
OPTIMIZE_fuzz = -O1
ifndef OPTIMIZE_$(VARIANT)
$(error There is no variant '$(VARIANT)', only release, debug, double, sanitize and fuzz)
endif
CFLAGS ?= $(OPTIMIZE_$(VARIANT)) -g
HOUSE_release = -DNDEBUG
HOUSE_double = -DCOHORT_REAL_DOUBLE
HOUSE_sanitize = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# A program of other people's files fails rather than obeys. FORTIFY works with optimisation only, and once.
HARD = -fstack-protector-strong $(if $(filter -O -O1 -O2 -O3 -Os -Og,$(CFLAGS)),\
	$(if $(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
# Never -ffast-math or contraction: the same bits on every machine.
HOUSE = -std=gnu11 -Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow $(WERROR) -ffp-contract=off \
	-fno-math-errno -fno-trapping-math -Isrc -Iinclude -I. -I$(BUILD)/jobs -MMD -MP $(HOUSE_$(VARIANT)) \
	$(if $(filter-out sanitize,$(VARIANT)),$(HARD))
# What not every compiler knows.
MAYBE = -Wno-format-truncation -Wno-psabi
COMPILE = $(CC) $(CPPFLAGS) $(strip $(file <$(BUILD)/build.cflags)) $(HOUSE) $(CFLAGS)
LINKER = -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS)
LINK = $(CC) $(HOUSE_$(VARIANT)) $(CFLAGS) $(LINKER)
LIBS = $(strip $(file <$(BUILD)/build.libs)) $(LDLIBS) -lm

# Kernels, all but ONCE, are compiled once for each instruction set; the program chooses at run time. (-Wno-psabi above: wide
# vectors are passed only to functions inlined in the same file.)
ONCE = src/kernels/dispatch.c src/kernels/matmul_pack.c
KERNELS = $(filter-out $(ONCE),$(wildcard src/kernels/*.c))
SOURCES = $(filter-out $(KERNELS),$(wildcard src/*.c src/*/*.c src/*/*/*.c data_tools/*.c))
ISAS = plain $(if $(filter x86_64,$(shell uname -m)),avx2 avx512)
FLAGS_avx2 = -mavx2 -mbmi2 -mfma
FLAGS_avx512 = -mavx512f -mavx512bw -mavx512vl -mavx512dq -mbmi2 -mprefer-vector-width=512
OBJECTS = $(SOURCES:%.c=$(BUILD)/%.o) $(foreach isa,$(ISAS),$(KERNELS:%.c=$(BUILD)/%.$(isa).o))
PARTS = $(filter-out $(BUILD)/src/main.o,$(OBJECTS))
LIBRARY = $(BUILD)/libcohort.a
TESTS = $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
BENCHES = $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/bench/bench_*.c))
TEMPLATES = $(patsubst %,$(BUILD)/%.h,$(wildcard jobs/*.sbatch))
DOUBLE_TESTS = $(shell grep -lE '^[/ *]*builds:.*double' tests/unit/test_*.c 2>/dev/null)
TEXTS = $(wildcard include/*.h src/*.[ch] src/*/*.[ch] src/*/*/*.[ch] data_tools/*.[ch] tests/*/*.[ch])
AGAIN = $(MAKE) --no-print-directory
SETUP = CC='$(CC)' tests/setup.sh

# As many jobs as there are cores, unless the user says -j.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif
ifndef V
QUIET = @
SAY = @echo
else
SAY = @:
endif

.DEFAULT_GOAL = all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help setup tests benches test run-tests check format layers documents man scripts debug double sanitize clang \
	bench soak demo install uninstall clean FORCE

##
## all             the program build/cohort (never installs packages; says what it needs)
all: $(BUILD)/cohort

##                 For a fresh Debian, as root or with sudo, these do all the set-up themselves:
## demo            simulate a class, train and evaluate a model, write a page about it: a minute
demo:
	@$(SETUP) install build demo
	+@$(AGAIN) all
	@COHORT=$(BUILD)/cohort tests/demo.sh

## test            build and run all tests; PATTERN=rbm runs those with rbm in their name
test:
	@$(SETUP) install build test
	+@$(AGAIN) run-tests

## check           format, layers, scripts, documents; debug, double-precision, sanitizer and clang builds and their
##                 tests; the benchmarks in short
check:
	@$(SETUP) install build test check
	+@$(AGAIN) format layers scripts documents
	+@$(AGAIN) debug
	+@$(AGAIN) fuzz
	+@$(AGAIN) double
	+@$(AGAIN) sanitize
	+@$(AGAIN) clang
	+@$(AGAIN) all benches
	@BUILD=$(BUILD) tests/bench/run_benches.sh --short
	@echo 'make check: all is well'

## bench           build and run the benchmarks of tests/bench (keep the machine free for it)
bench:
	@$(SETUP) install build
	+@$(AGAIN) all benches
	@BUILD=$(BUILD) tests/bench/run_benches.sh $(PATTERN)

## soak            long tests: kills, resumptions and bad input at random, for as long as LIMIT= seconds each
soak:
	@$(SETUP) install build test
	+@$(AGAIN) all
	@BUILD=$(BUILD) LIMIT=$(or $(LIMIT),7200) tests/run.sh --soak $(PATTERN)

## setup           only install what is missing
setup:
	@$(SETUP) install build test demo

##                 Parts of the above, which install nothing:
## format          whether clang-format agrees with the source; FIX=1 lets it rewrite
format:
ifdef FIX
	@clang-format -i $(TEXTS)
else
	@command -v clang-format >/dev/null || { echo 'format: skipped, there is no clang-format'; exit 0; }; \
	for file in $(TEXTS); do clang-format $$file | cmp -s - $$file || { echo "format: $$file"; bad=1; }; done; \
	test -z "$$bad" || { echo 'format: `make format FIX=1` puts these in order'; exit 1; }; \
	echo 'format: $(words $(TEXTS)) files as clang-format has them'
endif

## layers          whether includes point downwards and names begin with their file's
layers: all
	@BUILD=$(BUILD) tests/check_layers.sh

## documents       run the commands of all documents and compare the output that they show; FIX=1 rewrites it
documents: all
	@BUILD=$(BUILD) tests/check_documents.sh $(if $(FIX),write)

scripts:
	@if command -v shellcheck >/dev/null; then shellcheck -S warning -e SC2206,SC2207 .ci/run $(wildcard tests/*.sh tests/*/*.sh jobs/*.sbatch) && \
		echo 'scripts: shellcheck found nothing'; else echo 'scripts: skipped, there is no shellcheck'; fi

## debug           build/debug, with NaN in fresh memory, and its unit tests and some others; likewise:
## double          build/double, all models in double precision
## sanitize        build/sanitize, with the sanitizers of addresses and undefined behaviour
debug: QUICK = test_ cli_simulate cli_bits cli_runs
double: QUICK = test_
sanitize: QUICK = test_ cli_simulate cli_import cli_bad_input
debug double sanitize:
	+@$(AGAIN) VARIANT=$@ BUILD=$(BUILD)/$@ all tests
	@BUILD=$(BUILD)/$@ COHORT_QUICK=1 tests/run.sh $(or $(PATTERN),$(QUICK))

## clang           build/clang, by the other compiler (OMPI_CC and MPICH_CC tell mpicc), and its unit tests
clang:
	@command -v clang >/dev/null || echo 'clang: skipped, there is no clang'
	+@! command -v clang >/dev/null || OMPI_CC=clang MPICH_CC=clang $(AGAIN) BUILD=$(BUILD)/clang all tests
	@! command -v clang >/dev/null || BUILD=$(BUILD)/clang COHORT_QUICK=1 tests/run.sh $(or $(PATTERN),test_)

# The man pages, which the program prints: one for each command, and these.
MAN = cohort.1 $(patsubst src/commands/command_%.c,cohort-%.1,$(wildcard src/commands/command_*.c)) \
	cohort-files.5 cohort-models.7 cohort-settings.7
MAN_PATHS = $(foreach page,$(MAN),share/man/man$(patsubst .%,%,$(suffix $(page)))/$(page))
## man             the man pages, in build/man
man: $(MAN_PATHS:share/man/%=$(BUILD)/man/%)
$(BUILD)/man/%: $(BUILD)/cohort
	@mkdir -p $(@D)
	$(QUIET)$(BUILD)/cohort help $(patsubst cohort-%,%,$(basename $(@F))) --man >$@.new && mv $@.new $@

## install         PREFIX= (/usr/local) DESTDIR=: the program, its man pages, the job files, completion for shells
install: $(BUILD)/cohort man
	install -d $(ROOT)/bin $(ROOT)/share/cohort/jobs $(foreach folder,$(sort $(dir $(MAN_PATHS))),$(ROOT)/$(folder))
	install -m 755 $(BUILD)/cohort $(ROOT)/bin/cohort
	@for page in $(MAN_PATHS:share/man/%=%); do \
		install -m 644 $(BUILD)/man/$$page $(ROOT)/share/man/$$page || exit; done
	install -m 644 $(wildcard jobs/*) $(ROOT)/share/cohort/jobs
	install -D -m 644 src/commands/completion/cohort.bash $(ROOT)/share/bash-completion/completions/cohort
	install -D -m 644 src/commands/completion/_cohort $(ROOT)/share/zsh/site-functions/_cohort
## uninstall       remove what install put there
uninstall:
	rm -f $(ROOT)/bin/cohort $(foreach page,$(MAN_PATHS),$(ROOT)/$(page))
	rm -f $(ROOT)/share/bash-completion/completions/cohort $(ROOT)/share/zsh/site-functions/_cohort
	rm -rf $(ROOT)/share/cohort
## clean           remove what was built
clean:
	rm -rf $(BUILD)
## help            this list
##
##                 VARIANT= release, debug, double or sanitize; BUILD= directory; CC= CFLAGS= CPPFLAGS= LDFLAGS=
##                 as usual; WERROR= lets warnings pass; V=1 shows the commands; -j as many jobs as cores
help:
	@sed -n 's/^## \{0,1\}//p' Makefile

tests: $(TESTS)
benches: $(BENCHES)
run-tests: all tests
	$(if $(DOUBLE_TESTS),+@$(AGAIN) VARIANT=double BUILD=$(BUILD)/double tests \
		TESTS='$(DOUBLE_TESTS:tests/unit/%.c=$(BUILD)/double/tests/%)')
	@BUILD=$(BUILD) tests/run.sh $(PATTERN)

$(BUILD)/cohort: $(BUILD)/src/main.o $(LIBRARY)
	$(SAY) "link $@"
	$(QUIET)$(LINK) -o $@ $^ $(LIBS) && $(SETUP) one-mpi $@
$(LIBRARY): $(PARTS) $(BUILD)/parts
	$(SAY) "pack $@"
	$(QUIET)rm -f $@ && ar rcs $@ $(PARTS)
$(BUILD)/%.o: %.c $(BUILD)/build.cflags
	@mkdir -p $(@D)
	$(SAY) "compile $<"
	$(QUIET)$(COMPILE) -c -o $@ $<
# The templates of jobs, as texts in C.
$(BUILD)/src/sweep/slurm.o: $(TEMPLATES)
$(BUILD)/%.sbatch.h: %.sbatch
	@mkdir -p $(@D)
	$(QUIET)sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< >$@
define kernel_rule
$(BUILD)/%.$(1).o: %.c $(BUILD)/build.cflags
	@mkdir -p $$(@D)
	$(SAY) "compile $$< for $(1)"
	$(QUIET)$$(COMPILE) -DISA=$(1) -DISA_$(1) $(FLAGS_$(1)) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call kernel_rule,$(isa))))
$(BUILD)/tests/%: tests/unit/%.c $(LIBRARY) $(BUILD)/test.cflags
	@mkdir -p $(@D)
	$(SAY) "compile $<"
	$(QUIET)$(COMPILE) $(strip $(file <$(BUILD)/test.cflags)) $(LINKER) -o $@ $< $(LIBRARY) \
		$(LIBS) $(strip $(file <$(BUILD)/test.libs))
$(BUILD)/bench/%: tests/bench/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(SAY) "compile $<"
	$(QUIET)$(COMPILE) $(LINKER) -o $@ $< $(LIBRARY) $(LIBS)

# Fuzzers: the library as libFuzzer wants it, and a program for each tests/fuzz/fuzz_*.c. The wrappers of
# MPI's compilers take clang by these names. fuzz.h says what is wrapped and why.
HOUSE_fuzz = -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
FUZZERS = $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
WRAPPED = fail_abort aligned_alloc XXH3_128bits XXH3_128bits_digest
ifeq ($(VARIANT),fuzz)
export OMPI_CC = clang
export MPICH_CC = clang
endif
.PHONY: fuzz fuzzers
## fuzz            fuzzers of all that is read, LIMIT= (60) seconds each; PATTERN=import runs those with import
fuzz:
	@command -v clang >/dev/null || echo 'fuzz: skipped, there is no clang'
	+@! command -v clang >/dev/null || $(AGAIN) VARIANT=fuzz BUILD=$(BUILD)/fuzz fuzzers
	@! command -v clang >/dev/null || BUILD=$(BUILD)/fuzz LIMIT=$(or $(LIMIT),60) tests/fuzz/run_fuzzers.sh $(PATTERN)
soak: export FUZZ_LIMIT = $(or $(LIMIT),3600)
fuzzers: $(FUZZERS)
$(BUILD)/fuzz/%: tests/fuzz/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(SAY) "compile $<"
	$(QUIET)$(COMPILE) -fsanitize=fuzzer $(LDFLAGS) $(WRAPPED:%=-Wl,--wrap=%) -o $@ $< $(LIBRARY) $(LIBS)

# Flags of the libraries, looked for again when what decides them has changed; so are all objects then.
$(BUILD)/%.cflags: $(BUILD)/settings tests/setup.sh
	@$(SETUP) libs $* >$(BUILD)/$*.libs && $(SETUP) cflags $* >$@.new && $(SETUP) known $(MAYBE) >>$@.new && \
		$(SETUP) launcher $(BUILD)/mpi && mv $@.new $@
SETTINGS = $(CC) $(shell $(CC) --version 2>/dev/null | head -1) $(CPPFLAGS) $(HOUSE) $(CFLAGS) $(LDFLAGS) $(PKG_CONFIG_PATH) $(CPATH) $(foreach name,\
	HDF5 BLAS SLEEF XXHASH JANSSON ZLIB RANDOM123 SCALAPACK CMOCKA,$($(name)_CFLAGS) $($(name)_LIBS))
$(BUILD)/settings $(BUILD)/parts: FORCE
	@mkdir -p $(@D)
	@echo '$(if $(filter %parts,$@),$(PARTS),$(subst ','\'',$(SETTINGS)))' | cmp -s - $@ || \
		echo '$(if $(filter %parts,$@),$(PARTS),$(subst ','\'',$(SETTINGS)))' >$@

-include $(OBJECTS:.o=.d) $(TESTS:=.d) $(BENCHES:=.d) $(FUZZERS:=.d)
