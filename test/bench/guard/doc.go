// Package guard keeps the cost of small fixed scenarios: how often the production reconcilers reconcile, what they
// write, and how much they allocate. It times nothing, so that it holds on any machine.
//
// The figures are in testdata; the flag -update rewrites them. Read the difference before you commit it: a figure that
// grows needs a reason.
package guard
