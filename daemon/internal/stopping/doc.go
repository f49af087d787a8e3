// Package stopping stops containers, so that kubelets start others: the event, the preStop hook, then the runtime.
//
// A Workers stops each container in a goroutine of its own, a bounded number at a time, and calls a function when an
// order has ended. The end of Work ends all orders. An order that this cuts short has no outcome: the next process
// reads its cause again.
package stopping
