// Package containers converts containers of a runtime to those of the package containerrestart.
package containers

import (
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
)

// Of are the containers that a runtime of some name has.
func Of(runtime string, all []cri.Container) []containerrestart.Container {
	converted := make([]containerrestart.Container, 0, len(all))
	for _, c := range all {
		is := containerrestart.ReadContainer(runtime+"://"+c.ID, c.Labels, c.Annotations)
		is.Name = c.Name
		is.State, is.Created, is.Started = stateOf(c.State), c.CreatedAt, c.StartedAt
		is.ExitCode, is.Reason = c.ExitCode, c.Reason
		converted = append(converted, is)
	}
	return converted
}

func stateOf(s cri.State) containerrestart.State {
	switch s {
	case cri.Created:
		return containerrestart.StateCreated
	case cri.Running:
		return containerrestart.StateRunning
	case cri.Exited:
		return containerrestart.StateExited
	default:
		return containerrestart.StateUnknown
	}
}
