// Package pki makes the certificates, keys and kubeconfigs of one boot of a test cluster. They are thrown away with it.
package pki
