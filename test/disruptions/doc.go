// Package disruptions tests PodUnavailableBudgets as a whole before an API server: the reconciler of budgets, the
// entries that decide which requests are sent, and two replicas of the webhook of disruptions.
package disruptions
