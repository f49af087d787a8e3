// Package gitops tests the health checks of config/gitops: the Lua of Argo CD and the expressions of Flux, by their
// interpreters, over the same objects, and what kstatus says of these objects.
package gitops
