package dashboard

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// flags of the command.
type flags struct {
	port       int
	everywhere bool
	write      bool
}

// New returns the command dashboard.
func New(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &flags{}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve a page on this machine that follows rollouts pod by pod",
		Long: "Serve a page on this machine: workloads, rollouts pod by pod as they run, the plan of a manifest, " +
			"PodUnavailableBudgets, image pulls by node, and probes.\n\nThe page shows what you may read, and changes " +
			"nothing without --write. It is served on 127.0.0.1 alone, to the browser that opens the printed URL, until " +
			"Ctrl-C.",
		Example: "  # Follow the rollouts of namespace shop\n" +
			"  kubectl kruise dashboard -n shop\n\n" +
			"  # Follow all namespaces, and let the page pause, resume, undo, restart and protect workloads\n" +
			"  kubectl kruise dashboard -A --write",
		Args: cobra.NoArgs,
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "The port to listen on: 0 means a free one")
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Show the objects of all namespaces")
	cmd.Flags().BoolVar(&o.write, "write", false, "Let the page pause, resume, undo, restart and protect workloads")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return o.run(target.Command{Command: cmd, IOStreams: streams, Factory: f})
	}
	return cmd
}

// run serves the page until a signal.
func (o *flags) run(c target.Command) error {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := o.server(c)
	if err != nil {
		return err
	}
	listen := net.ListenConfig{}
	l, err := listen.Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.host = l.Addr().String()
	where, mode := "all namespaces", "read-only"
	if s.about.Namespace != "" {
		where = "namespace " + s.about.Namespace
	}
	if o.write {
		mode = "with writes"
	}
	fmt.Fprintf(c.Out, "Dashboard of %s, %s, until Ctrl-C:\n\n  http://%s%s?token=%s\n\n", where, mode, s.host,
		s.secrets.path, s.secrets.token)
	return s.serve(ctx, l)
}

// server returns the server of the flags, which does not listen yet.
func (o *flags) server(c target.Command) (*server, error) {
	loader := c.Factory.ToRawKubeConfigLoader()
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, err
	}
	if o.everywhere {
		namespace = ""
	}
	config, err := c.Factory.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100 // a page begins a dozen lists at once
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s := &server{
		secrets: newSecrets(), interval: 200 * time.Millisecond, clock: clock.RealClock{},
		cluster: &cluster{dynamic: client, namespace: namespace, mapping: mapping(c), clock: clock.RealClock{}},
		about:   about{Namespace: namespace, Cluster: config.Host, Write: o.write},
		command: func(ctx context.Context) target.Command {
			cmd := &cobra.Command{}
			cmd.SetContext(ctx)
			return target.Command{Command: cmd, IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Factory: c.Factory}
		},
	}
	s.about.Token = s.secrets.write
	if raw, err := loader.RawConfig(); err == nil {
		s.about.Context = raw.CurrentContext
	}
	return s, nil
}

func mapping(c target.Command) func(schema.GroupKind) (*meta.RESTMapping, error) {
	return func(kind schema.GroupKind) (*meta.RESTMapping, error) { return c.Mapping(kind) }
}
