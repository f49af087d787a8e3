package pub

import "github.com/kruisekit/kruisekit/inplace"

// Policy is what the installation offers. Give one policy to all functions. The zero value is the default of the reference.
type Policy struct {
	// Installed is what updates in place rely on: with EnvDaemon, metadata that feeds environment variables restarts containers;
	// with Resize, a pod whose resize is under way is unavailable.
	Installed inplace.Installation
	// Resizes makes RESIZE an operation of its own, which only budgets protect that list it. Without it, budgets that protect
	// UPDATE protect RESIZE too.
	Resizes bool
}
