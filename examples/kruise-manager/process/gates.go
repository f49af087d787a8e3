package process

import (
	"slices"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/gates"
)

// read are the gates that something reads, or from which others follow.
func read() []gates.Gate {
	return []gates.Gate{
		gates.EnableExternalCerts,
		gates.KruiseDaemon,
		gates.PodWebhook,
	}
}

// withoutEffect are the gates that somebody changed and nothing reads.
func withoutEffect(g gates.Gates) []gates.Gate {
	return slices.DeleteFunc(g.Changed(), func(name gates.Gate) bool { return slices.Contains(read(), name) })
}
