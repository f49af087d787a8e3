// Package containers converts containers of a runtime to those of the package containerrestart.
package containers

import (
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
)

// Of are the containers that a runtime of some name has. The states of both packages have the same names.
func Of(runtime string, all []cri.Container) []containerrestart.Container {
	converted := make([]containerrestart.Container, 0, len(all))
	for _, c := range all {
		is := containerrestart.ReadContainer(runtime+"://"+c.ID, c.Labels, c.Annotations)
		is.Name = c.Name
		is.State, is.Created, is.Started = containerrestart.State(c.State), c.CreatedAt, c.StartedAt
		is.ExitCode, is.Reason = c.ExitCode, c.Reason
		converted = append(converted, is)
	}
	return converted
}
