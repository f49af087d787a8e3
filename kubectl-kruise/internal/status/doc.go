// Package status has the commands status and watch: how far a rollout is, why it stands still, and which pods are
// concerned.
//
// Of computes the report from objects, without I/O; Report.Print renders it.
package status
