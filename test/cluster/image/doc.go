// Package image makes small container images that really run, and pushes them to a registry: busybox with whatever
// environment, command and files a test wants. It speaks the registry's HTTP interface itself, so that a test knows the
// digest of what it pushed, and that the same Spec has the same digest everywhere the same busybox is.
//
//	made, err := pusher.Push(ctx, image.Spec{Name: "registry.example.com/web:v2", Env: []string{"VERSION=2"}})
//	... made.Digest ...
package image
