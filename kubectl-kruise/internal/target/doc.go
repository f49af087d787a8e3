// Package target finds the objects that a command line names, whatever version the API server serves them in, sends
// patches to them, and prints the results as kubectl does.
//
// Extend adds our kinds to a command of kubectl: objects of kinds that kubectl knows stay with kubectl.
package target
