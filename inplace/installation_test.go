package inplace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/inplace"
)

func TestInstallation(t *testing.T) {
	for _, c := range []struct {
		why       string
		installed inplace.Installation
		want      inplace.Policy
	}{
		{
			"without a daemon the environment blocks an update, and no node answers a resize",
			inplace.Installation{},
			inplace.Policy{IgnoreResources: true},
		},
		{
			"a daemon restarts containers for their environment",
			inplace.Installation{EnvDaemon: true},
			inplace.Policy{Env: inplace.EnvRestart, IgnoreResources: true},
		},
		{
			"resources change where the API server takes them",
			inplace.Installation{Resize: true},
			inplace.Policy{Resources: inplace.ResourcesReplaced},
		},
	} {
		if diff := cmp.Diff(c.want, c.installed.Policy()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.why, diff)
		}
	}
}
