// Package create adds the kinds of apps.kruise.io to the commands of kubectl that make objects: create and expose.
package create
