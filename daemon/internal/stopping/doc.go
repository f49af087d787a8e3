// Package stopping stops containers, so that kubelets start others: the event, the preStop hook, then the runtime.
//
// A Workers stops containers in goroutines of its own, a bounded number at a time, and calls a function when an order
// is over. The context of Work ends all orders. An order that the context cuts short has no outcome: the next process
// reads its cause again.
package stopping
