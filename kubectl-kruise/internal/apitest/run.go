package apitest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// Result is what a command did.
type Result struct {
	Out, ErrOut string
	Err         error
	// Writes are the requests that write, where the API server is one of this package.
	Writes []string
}

// fatal ends a command of kubectl, which would end the process.
type fatal string

// RunConfig runs a command with arguments against the API server of a kubeconfig.
func RunConfig(
	t testing.TB, newCommand func(genericiooptions.IOStreams) *cobra.Command, kubeconfig string, args ...string,
) (r Result) {
	t.Helper()
	t.Setenv("KUBECONFIG", kubeconfig)
	var out, errOut bytes.Buffer
	cmdutil.BehaviorOnFatal(func(message string, _ int) { panic(fatal(message)) })
	defer cmdutil.DefaultBehaviorOnFatal()
	defer func() {
		recovered := recover()
		if message, ok := recovered.(fatal); ok {
			r.Err = errors.New(string(message))
		} else if recovered != nil {
			panic(recovered)
		}
		r.Out, r.ErrOut = out.String(), errOut.String()
	}()
	cmd := newCommand(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut})
	cmd.SetArgs(append([]string{"--cache-dir", t.TempDir()}, args...))
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	r.Err = cmd.ExecuteContext(t.Context())
	return r
}

// Run runs a command against the server.
func (s *Server) Run(
	t testing.TB, newCommand func(genericiooptions.IOStreams) *cobra.Command, args ...string,
) Result {
	t.Helper()
	s.Writes()
	args = append([]string{"--server", s.URL, "--namespace", "default"}, args...)
	r := RunConfig(t, newCommand, t.TempDir()+"/none", args...)
	r.Writes = s.Writes()
	return r
}
