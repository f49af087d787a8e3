// Package kruisekit is a library of Kubernetes workload abilities.
package kruisekit
