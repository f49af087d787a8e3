package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"
	"k8s.io/utils/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// flags of the command.
type flags struct {
	images         []string
	output, failOn string
	options        forecast.Options
}

// New returns the command plan.
func New(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &flags{}
	cmd := &cobra.Command{
		Use:   "plan (-f FILENAME | TYPE/NAME --image CONTAINER=IMAGE)",
		Short: "Show what a change will do to each pod, before it is applied",
		Long: "Show what a change will do to each pod, before it is applied: which containers restart in place, which pods " +
			"are recreated because of which field, and which ones stay; the batches, how many pods stay available, and how " +
			"long it takes. Nothing is written.\n\nThe exit code is 0 where nothing restarts, 2 where containers restart " +
			"in their pods, 3 where pods are recreated or deleted, and 4 where the rollout does not complete.",
		Example: "  # What does the new manifest do?\n" +
			"  kubectl kruise plan -f new.yaml\n\n" +
			"  # Which pods restart with another image of the container app?\n" +
			"  kubectl kruise plan cloneset/web --image app=web:3\n\n" +
			"  # Refuse a change that recreates pods\n" +
			"  kubectl kruise plan -f new.yaml --fail-on recreates",
	}
	cmdutil.AddFilenameOptionFlags(cmd, &resource.FilenameOptions{}, "that contains the changed workloads")
	cmd.Flags().StringArrayVar(&o.images, "image", nil, "CONTAINER=IMAGE: another image of a container, * for all of them")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "text or json")
	cmd.Flags().StringVar(&o.failOn, "fail-on", "restarts",
		"The least severe forecast for which the exit code is not 0: restarts, recreates, stuck or never")
	cmd.Flags().BoolVar(&o.options.HoldHooks, "hold-hooks", false,
		"End where pods wait for lifecycle hooks, instead of assuming that these are answered at once")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.run(target.Command{Command: cmd, IOStreams: streams, Factory: f}, args)
	}
	return cmd
}

// run prints the forecasts, and returns an error with the exit code.
func (o *flags) run(c target.Command, args []string) error {
	least, err := severityOf(o.failOn)
	if err != nil {
		return err
	}
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output %q must be text or json", o.output)
	}
	changes, err := o.changes(c, args)
	if err != nil {
		return err
	}
	worst, planned := 0, 0
	for _, change := range changes {
		f, err := o.forecast(c, change)
		if isUnsupported(err) && len(changes) > 1 {
			fmt.Fprintf(c.ErrOut, "Skipped %s: %v\n", change.wanted.GetName(), err)
			continue
		}
		if err != nil {
			return err
		}
		if planned++; planned > 1 && o.output == "text" {
			fmt.Fprintln(c.Out)
		}
		if err := o.print(c, f); err != nil {
			return err
		}
		worst = max(worst, slices.Index(forecast.Severities(), f.Severity))
	}
	if worst > 0 && worst >= least {
		return exec.CodeExitError{Code: 1 + worst, Err: errors.New(words()[worst])} // 2 to 4, see doc.go
	}
	return nil
}

func (o *flags) print(c target.Command, f *forecast.Forecast) error {
	if o.output == "json" {
		return f.WriteJSON(c.Out)
	}
	return f.WriteText(c.Out)
}

// words returns the error text of each severity, in the order of forecast.Severities.
func words() []string {
	return []string{
		"", "containers restart", "pods are recreated or deleted", "the rollout does not complete",
	}
}

// severityOf returns the index in forecast.Severities of the lowest severity that makes the command fail. For "never"
// it returns an index above all severities.
func severityOf(failOn string) (int, error) {
	if failOn == "never" {
		return len(forecast.Severities()), nil
	}
	for i, s := range forecast.Severities() {
		if i > 0 && strings.EqualFold(string(s), failOn) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("--fail-on %q must be restarts, recreates, stuck or never", failOn)
}

// change holds the live workload and the workload after the change. live is nil if the workload does not exist.
type change struct{ live, wanted *unstructured.Unstructured }

// changes returns the changes that the arguments and flags describe.
func (o *flags) changes(c target.Command, args []string) ([]change, error) {
	switch {
	case len(args) > 0 && len(o.images) == 0:
		return nil, errors.New("what changes? Name a file with -f, or an image with --image")
	case len(args) > 0:
		objects, err := c.Find(args)
		if err != nil {
			return nil, err
		}
		all := make([]change, 0, len(objects))
		for _, object := range objects {
			all = append(all, change{live: object.Unstructured, wanted: object.DeepCopy()})
		}
		return all, nil
	}
	manifests, err := c.Manifests()
	if err != nil {
		return nil, err
	}
	all := make([]change, 0, len(manifests))
	for _, manifest := range manifests {
		change := change{wanted: manifest}
		// run skips or rejects unsupported kinds, so their live objects are not read. Other errors of Decode recur there.
		if _, err := forecast.Decode(manifest); kinds.IsNative(manifest) || !isUnsupported(err) {
			if change, err = changeOf(c, manifest); err != nil {
				return nil, err
			}
		}
		all = append(all, change)
	}
	return all, nil
}

func isUnsupported(err error) bool {
	var unsupported *forecast.UnsupportedError
	return errors.As(err, &unsupported)
}

// changeOf reads the live object of a manifest, and computes the object after kubectl apply.
func changeOf(c target.Command, manifest *unstructured.Unstructured) (change, error) {
	live, err := stored(c, manifest)
	if err != nil || live == nil {
		return change{wanted: manifest}, err
	}
	wanted, err := Apply(live, manifest)
	return change{live: live, wanted: wanted}, err
}

// stored reads the live object of a manifest, in the version of the manifest. It returns nil if the object does not
// exist. stored sets the namespace of the command line in a manifest without one.
func stored(c target.Command, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	mapper, err := c.Factory.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	kind := manifest.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	dynamic, err := c.Factory.DynamicClient()
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && manifest.GetNamespace() == "" {
		namespace, _, err := c.Factory.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return nil, err
		}
		manifest.SetNamespace(namespace)
	}
	live, err := dynamic.Resource(mapping.Resource).Namespace(manifest.GetNamespace()).
		Get(c.Context(), manifest.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is no such object
	}
	return live, err
}

// Manifest forecasts what applying a manifest does. Warnings go to the error stream of the command.
func Manifest(c target.Command, manifest *unstructured.Unstructured) (*forecast.Forecast, error) {
	if _, err := forecast.Decode(manifest); err != nil && !kinds.IsNative(manifest) {
		return nil, err
	}
	change, err := changeOf(c, manifest)
	if err != nil {
		return nil, err
	}
	return (&flags{}).forecast(c, change)
}

// forecast forecasts one change.
func (o *flags) forecast(c target.Command, change change) (*forecast.Forecast, error) {
	change.request(c)
	wanted, err := forecast.Decode(change.wanted)
	if err != nil {
		return nil, err
	}
	images, err := Images(o.images)
	if err != nil {
		return nil, err
	}
	if err := SetImages(forecast.Containers(wanted), images); err != nil {
		return nil, fmt.Errorf("%s %s: %w", change.wanted.GetKind(), change.wanted.GetName(), err)
	}
	in := forecast.Input{Now: clock.RealClock{}.Now(), Options: o.options, Wanted: wanted}
	if change.live == nil {
		in.Live = unborn(wanted)
		return forecast.Of(c.Context(), in)
	}
	if in.Live, err = forecast.Decode(change.live); err != nil {
		return nil, err
	}
	read, err := forecast.Read(c, in.Live)
	if err != nil {
		return nil, err
	}
	for _, unread := range read.Unread {
		fmt.Fprintln(c.ErrOut, "Warning:", unread)
	}
	in.Objects = read.Objects
	return forecast.Of(c.Context(), in)
}

// unborn returns the live side of a forecast for a workload that does not exist yet: a copy of wanted with a UID that
// owns no pods.
func unborn(wanted client.Object) client.Object {
	live, _ := wanted.DeepCopyObject().(client.Object)
	live.SetUID(types.UID("unborn"))
	return live
}
