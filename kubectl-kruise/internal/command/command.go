// Package command joins the commands of the plugin to one tree.
package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/autoscale"
	"k8s.io/kubectl/pkg/cmd/completion"
	"k8s.io/kubectl/pkg/cmd/config"
	"k8s.io/kubectl/pkg/cmd/diff"
	"k8s.io/kubectl/pkg/cmd/kustomize"
	"k8s.io/kubectl/pkg/cmd/options"
	"k8s.io/kubectl/pkg/cmd/patch"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/replace"
	"k8s.io/kubectl/pkg/cmd/scale"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/cmd/wait"
	utilcompletion "k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/create"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/dashboard"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/diagnose"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/explain"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/look"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/migrate"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/operate"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/plan"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/pods"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/rollout"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/set"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/status"

	// Translations, before kubectl asks for one.
	_ "github.com/kruisekit/kruisekit/kubectl-kruise/internal/language"
)

// name is what the user calls.
const name = "kubectl kruise"

// New returns the command with all of its subcommands.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	warnings := rest.NewWarningWriter(streams.ErrOut,
		rest.WarningWriterOptions{Deduplicate: true, Color: term.AllowsColorOutput(streams.ErrOut)})
	warningsAsErrors, profile := false, &profile{}
	root := &cobra.Command{
		Use:           "kubectl-kruise",
		Short:         "Manage the workloads of apps.kruise.io",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceUsage:  true,
		SilenceErrors: true,
		Run:           func(cmd *cobra.Command, _ []string) { _ = cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			rest.SetDefaultWarningHandler(warnings)
			return profile.start()
		},
		PersistentPostRunE: func(*cobra.Command, []string) error {
			if err := profile.write(); err != nil {
				return err
			}
			if n := warnings.WarningCount(); warningsAsErrors && n > 0 {
				return fmt.Errorf("the server sent %d warnings", n)
			}
			return nil
		},
	}
	root.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	root.PersistentFlags().BoolVar(&warningsAsErrors, "warnings-as-errors", false,
		"Treat warnings received from the server as errors and exit with a non-zero exit code")
	profile.addFlags(root.PersistentFlags())
	kubeconfig := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50).
		WithWarningPrinter(streams)
	kubeconfig.AddFlags(root.PersistentFlags())
	matching := cmdutil.NewMatchVersionFlags(kubeconfig)
	matching.AddFlags(root.PersistentFlags())
	f := cmdutil.NewFactory(matching)

	groups := groups(f, streams)
	groups.Add(root)
	templates.ActsAsRootCommand(root, []string{"options"}, groups...)
	utilcompletion.SetFactoryForCompletion(f)
	root.AddCommand(others(f, streams)...)
	return root
}

// groups are the commands, as the help lists them.
func groups(f cmdutil.Factory, streams genericiooptions.IOStreams) templates.CommandGroups {
	return templates.CommandGroups{
		{
			Message: "Basic Commands:",
			Commands: []*cobra.Command{
				create.New(f, streams), create.NewExpose(f, streams), scale.NewCmdScale(f, streams),
				autoscale.NewCmdAutoscale(f, streams), look.NewGet(name, f, streams),
				look.NewDescribe(name, f, streams),
			},
		},
		{
			Message:  "Rollout Commands:",
			Commands: []*cobra.Command{rollout.New(f, streams), set.New(f, streams), migrate.New(f, streams)},
		},
		{
			Message:  "Pod Commands:",
			Commands: []*cobra.Command{pods.NewScaleDown(f, streams), pods.NewExec(f, streams)},
		},
		{
			Message: "Operating Commands:",
			Commands: append(operate.NewProtect(f, streams), operate.NewRestart(f, streams), operate.NewPull(f, streams),
				operate.NewPauseAll(f, streams), diagnose.New(f, streams)),
		},
		{
			Message: "Insight Commands:",
			Commands: []*cobra.Command{
				plan.New(f, streams), status.New(f, streams), status.NewWatch(f, streams), explain.New(f, streams),
				dashboard.New(f, streams),
			},
		},
		{
			Message: "Advanced Commands:",
			Commands: []*cobra.Command{
				diff.NewCmdDiff(f, streams), apply.NewCmdApply(name, f, streams), patch.NewCmdPatch(f, streams),
				replace.NewCmdReplace(f, streams), wait.NewCmdWait(f, streams), kustomize.NewCmdKustomize(streams),
			},
		},
	}
}

// others are the commands that the help lists last.
func others(f cmdutil.Factory, streams genericiooptions.IOStreams) []*cobra.Command {
	return []*cobra.Command{
		completion.NewCmdCompletion(streams.Out, ""),
		config.NewCmdConfig(f, clientcmd.NewDefaultPathOptions(), streams),
		plugin.NewCmdPlugin(streams), look.NewVersion(f, streams), options.NewCmdOptions(streams.Out),
		apiresources.NewCmdAPIVersions(f, streams), apiresources.NewCmdAPIResources(f, streams),
	}
}
