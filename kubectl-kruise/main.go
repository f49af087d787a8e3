// Kubectl-kruise is a plugin of kubectl for the workloads of apps.kruise.io: it is called as kubectl kruise.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"

	// Credentials of cloud providers.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

// version is set by the linker of a release.
var version = "v0.0.0-local"

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := command.New(streams)
	root.Version = version
	cmdutil.CheckErr(cli.RunNoErrOutput(root))
}
