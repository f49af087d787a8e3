// Package pods finds the pods of workloads, and has the commands about single pods: scaledown and exec.
package pods
