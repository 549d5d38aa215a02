# Estimates and errors by the R package survey, Gini coefficients by laeken, HC1 of logits by sandwich.
# Called by make_estimates_golden.py: reads jobs.csv and the files it names, writes answers.csv.
suppressMessages({library(survey); library(laeken); library(sandwich)})
options(digits = 17)
folder <- commandArgs(TRUE)[1]
jobs <- read.csv(file.path(folder, "jobs.csv"), colClasses = "character", na.strings = character())
files <- list()
for (name in unique(jobs$file)) files[[name]] <- read.csv(file.path(folder, paste0(name, ".csv")))

design_of <- function(job, data) {
  formula_of <- function(name, absent) if (name == "") absent else as.formula(paste0("~", name))
  svydesign(ids = formula_of(job$unit, ~1), strata = formula_of(job$strata, NULL),
            weights = formula_of(job$weights, ~rep(1, nrow(data))), fpc = formula_of(job$population, NULL),
            data = data, nest = TRUE)
}

normal <- function(value, se) c(value, se, value - qnorm(0.975) * se, value + qnorm(0.975) * se)

# Central differences of the coefficient in each record's weight, extrapolated twice; zero outside the domain.
gini_figures <- function(y, inside, design) {
  w <- weights(design)
  coefficient <- function(w) gini(y[inside], weights = w[inside])$value / 100
  slope <- function(i) {
    step <- function(h) {
      up <- w; up[i] <- up[i] + h; down <- w; down[i] <- down[i] - h
      (coefficient(up) - coefficient(down)) / (2 * h)
    }
    h <- w[i] * 0.2
    first <- c(step(h), step(h / 2), step(h / 4))
    second <- (4 * first[2:3] - first[1:2]) / 3
    (16 * second[2] - second[1]) / 15
  }
  z <- numeric(length(y))
  z[inside] <- sapply(which(inside), slope)
  normal(coefficient(w), as.numeric(SE(svytotal(~z, update(design, z = z)))))
}

answer <- function(job) {
  data <- files[[job$file]]
  design <- design_of(job, data)
  inside <- if (job$by == "") rep(TRUE, nrow(data)) else data[[job$by]] == job$domain
  part <- subset(design, inside)
  a <- if (job$a == "") NULL else as.formula(paste0("~", job$a))
  b <- if (job$b == "") NULL else as.formula(paste0("~", job$b))
  of <- function(found) normal(as.numeric(coef(found))[1], as.numeric(SE(found))[1])
  switch(job$kind,
    total = of(svytotal(a, part, na.rm = TRUE)),
    mean = of(svymean(a, part, na.rm = TRUE)),
    share = of(svymean(as.formula(paste0("~as.numeric(", job$a, ")")), part, na.rm = TRUE)),
    ratio = of(svyratio(a, b, part, na.rm = TRUE)),
    quantile = {
      found <- svyquantile(a, part, as.numeric(job$level), interval.type = "mean", qrule = "math", df = Inf,
                           na.rm = TRUE)[[1]]
      as.numeric(found[c(1, 4, 2, 3)])
    },
    correlation = {
      both <- !is.na(data[[job$a]]) & !is.na(data[[job$b]]) & inside
      centre <- coef(svymean(~u + v, subset(update(design, u = data[[job$a]], v = data[[job$b]]), both)))
      u <- data[[job$a]] - centre[1]
      v <- data[[job$b]] - centre[2]
      moments <- svymean(~uu + vv + uv, subset(update(design, uu = u * u, vv = v * v, uv = u * v), both))
      of(svycontrast(moments, quote(uv / sqrt(uu * vv))))
    },
    gini = gini_figures(data[[job$a]], inside & !is.na(data[[job$a]]), design),
    logit = {
      data$w <- if (job$weights == "") rep(1, nrow(data)) else data[[job$weights]]
      control <- glm.control(epsilon = 1e-15, maxit = 100)
      fitted <- glm(as.formula(job$a), quasibinomial, data, weights = w, control = control)
      normal(coef(fitted)[[job$b]], sqrt(vcovHC(fitted, type = "HC1")[job$b, job$b]))
    })
}

answers <- t(sapply(seq_len(nrow(jobs)), function(i) answer(jobs[i, ])))
write.table(format(answers, digits = 17), file.path(folder, "answers.csv"), sep = ",", quote = FALSE,
            row.names = FALSE, col.names = c("value", "se", "low", "high"))
cat(R.version.string, "survey", as.character(packageVersion("survey")),
    "laeken", as.character(packageVersion("laeken")),
    "sandwich", as.character(packageVersion("sandwich")), file = file.path(folder, "versions.txt"))
