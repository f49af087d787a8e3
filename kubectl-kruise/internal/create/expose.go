package create

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/expose"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// NewExpose returns the command expose of kubectl for our workloads, too.
func NewExpose(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	flags := expose.NewExposeFlags(streams)
	kubectl := expose.NewCmdExposeService(f, streams)
	cmd := &cobra.Command{
		Use: kubectl.Use, Short: "Expose the pods of a workload, a service or a pod as a new Kubernetes service",
		Long: kubectl.Long, Example: kubectl.Example, DisableFlagsInUseLine: true,
		Run: func(cmd *cobra.Command, args []string) {
			o, err := flags.ToOptions(cmd, args)
			cmdutil.CheckErr(err)
			cmdutil.CheckErr(o.Complete(f))
			cmdutil.CheckErr(o.RunExpose(cmd, args))
		},
	}
	flags.AddFlags(cmd)
	return target.Extend(f, streams, cmd, target.Extension{
		Run: func(c target.Command, objects []target.Object, _ []string) error {
			for _, one := range objects {
				if err := exposeOne(c, flags, one.Unstructured); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// exposeOne has kubectl expose a stand-in, which kubectl takes from a file alone.
func exposeOne(c target.Command, flags *expose.ExposeServiceFlags, workload *unstructured.Unstructured) error {
	stand, err := StandIn(workload)
	if err != nil {
		return err
	}
	data, err := json.Marshal(stand)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kubectl-kruise")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "deployment.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	o, err := flags.ToOptions(c.Command, nil)
	if err != nil {
		return err
	}
	if err := o.Complete(c.Factory); err != nil {
		return err
	}
	o.FilenameOptions = resource.FilenameOptions{Filenames: []string{file}}
	return o.RunExpose(c.Command, nil)
}

// StandIn returns a Deployment with the name, the selector and the ports of a workload: kubectl makes the service of
// that.
func StandIn(o *unstructured.Unstructured) (*appsv1.Deployment, error) {
	template, err := kinds.Template(o)
	if err != nil {
		return nil, fmt.Errorf("cannot expose a %s: %w", o.GetKind(), err)
	}
	fields, _, err := unstructured.NestedMap(o.Object, "spec", "selector")
	if err != nil {
		return nil, err
	}
	selector, err := kinds.Read[metav1.LabelSelector](&unstructured.Unstructured{Object: fields})
	if err != nil {
		return nil, err
	}
	d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	d.Spec = appsv1.DeploymentSpec{Selector: selector, Template: *template}
	d.Name, d.Namespace, d.Labels = o.GetName(), o.GetNamespace(), o.GetLabels()
	return d, nil
}
