// Package protection returns the admission policies of deletion protection as Go values, made of the table in the
// primitive of the same name. With kubectl:
//
//	kubectl apply -k config/protection
//
// Laws:
//   - With the policies installed, the value Always of every kind and the value Cascading of workloads hold while no
//     manager runs.
//   - The policies decide as the webhooks do.
//
// What Cascading counts of a namespace or of a definition needs lists, which no policy can read: these stay with the
// webhooks, which fail closed for labelled objects.
//
// The files are written by `go test ./config/protection -update`.
package protection
