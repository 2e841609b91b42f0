// Package vi has the inference that algos/viboost and algos/lab/viboost share: the updates
// of one round, with the approximate mode (17) of q(c). The doc of algos/viboost has the
// model; numbers are the paper's.
package vi
