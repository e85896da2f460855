// Package bench measures Sluice against its peers, side by side and interleaved in one run, and prints ratios. It is a
// module of its own, so that peers never reach those who import the library.
package bench
