// Package boosting has what the lecture slides "Boosting" add to package boost (numbers are
// theirs): AnyBoost (54–60), the margins of AdaBoost and the bounds on the error of new
// examples (20, 21), bins of equal width for BHBoost (43–53), and all stumps as a matrix,
// for games of boosting.
package boosting
