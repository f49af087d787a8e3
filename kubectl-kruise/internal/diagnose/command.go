package diagnose

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// New returns the command diagnose.
func New(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	b := bundle{file: "kruise-diagnose.tar.gz", system: "kruise-system", lines: 2000}
	cmd := &cobra.Command{
		Use:   "diagnose",
		Short: "Pack versions, objects, events and logs into a file, without secrets",
		Long: "Pack versions, objects of the kinds of kruise, webhook configurations, warnings, and logs of managers and " +
			"daemons into a file.\n\nSecrets are not read. Values of environment variables and of annotations, commands, " +
			"data, and messages that may quote a container are removed. Objects that hold content of all namespaces are " +
			"packed with --all-namespaces only. Read the file before you pass it on: logs hold names of objects and images.",
		Example: "  # Everything about the namespace prod\n  kubectl kruise diagnose -n prod",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&b.file, "output", "o", b.file, "The file to write: - writes to the output")
	cmd.Flags().StringVar(&b.system, "manager-namespace", b.system, "The namespace of managers and daemons")
	cmd.Flags().Int64Var(&b.lines, "lines", b.lines, "How many lines of each log to pack")
	cmd.Flags().BoolVarP(&b.everywhere, "all-namespaces", "A", false, "Pack the objects of all namespaces")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b.Command = target.Command{Command: cmd, IOStreams: streams, Factory: f}
		b.clock = clock.RealClock{}
		return b.write()
	}
	return cmd
}

// bundle is one call of diagnose.
type bundle struct {
	target.Command
	clock        clock.PassiveClock
	file, system string
	lines        int64
	everywhere   bool

	files *tar.Writer
	// missing are what could not be read.
	missing []string
}

func (b *bundle) write() (err error) {
	out := b.Out
	if b.file != "-" {
		file, err := os.OpenFile(b.file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	zipped := gzip.NewWriter(out)
	b.files = tar.NewWriter(zipped)
	if err := b.collect(); err != nil {
		return err
	}
	if err := errors.Join(b.files.Close(), zipped.Close()); err != nil {
		return err
	}
	for _, m := range b.missing {
		fmt.Fprintln(b.ErrOut, "Not packed: "+m)
	}
	if b.file != "-" {
		fmt.Fprintf(b.Out, "Wrote %s. Read it before you pass it on.\n", b.file)
	}
	return nil
}

// kind is a list of objects to pack.
type kind struct {
	schema.GroupKind
	// everywhere packs the objects of the cluster and of all namespaces, whatever the namespace of the command.
	everywhere bool
}

// packed are the kinds of which objects are packed.
func packed() []kind {
	all := []kind{
		{schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, true},
		{schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}, true},
		{schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}, true},
		{schema.GroupKind{Group: kinds.Policy, Kind: "PodUnavailableBudget"}, false},
		{schema.GroupKind{Group: "apps", Kind: "ControllerRevision"}, false},
		{schema.GroupKind{Kind: "Pod"}, false},
	}
	for _, name := range []string{
		"AdvancedCronJob", "BroadcastJob", "CloneSet", "ContainerRecreateRequest", "DaemonSet", "EphemeralJob",
		"ImageListPullJob", "ImagePullJob", "NodeImage", "NodePodProbe", "PersistentPodState", "PodProbeMarker",
		"ResourceDistribution", "SidecarSet", "StatefulSet", "UnitedDeployment", "WorkloadSpread",
	} {
		all = append(all, kind{schema.GroupKind{Group: kinds.Apps, Kind: name}, name == "SidecarSet"})
	}
	return all
}

// collect packs everything. What cannot be read is left out, and named.
func (b *bundle) collect() error {
	namespace, _, err := b.Factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	if b.everywhere {
		namespace = ""
	}
	if err := b.versions(); err != nil {
		return err
	}
	for _, k := range packed() {
		if err := b.objects(k, namespace); err != nil {
			return err
		}
	}
	if err := b.events(namespace); err != nil {
		return err
	}
	return b.logs()
}

func (b *bundle) versions() error {
	discovery, err := b.Factory.ToDiscoveryClient()
	if err != nil {
		return err
	}
	version, err := discovery.ServerVersion()
	if err != nil {
		return err // no server: there is nothing to pack
	}
	return b.add("version.yaml", version)
}

func (b *bundle) objects(k kind, namespace string) error {
	mapping, err := b.Mapping(k.GroupKind)
	if err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot && namespace != "" && !k.everywhere {
		err = errors.New("the objects hold content of all namespaces, set --all-namespaces to pack them")
	}
	if err == nil {
		if k.everywhere {
			namespace = ""
		}
		var items []unstructured.Unstructured
		if items, err = b.List(k.GroupKind, namespace, metav1.ListOptions{}); err == nil {
			var list []any
			for i := range items {
				if k.Kind != "CustomResourceDefinition" || strings.HasSuffix(items[i].GetName(), ".kruise.io") {
					list = append(list, Redact(&items[i]).Object)
				}
			}
			return b.add("objects/"+mapping.Resource.GroupResource().String()+".yaml", list)
		}
	}
	b.missing = append(b.missing, fmt.Sprintf("%s: %v", k.GroupKind, err))
	return nil
}

func (b *bundle) events(namespace string) error {
	clients, err := b.Factory.KubernetesClientSet()
	if err != nil {
		return err
	}
	list, err := clients.CoreV1().Events(namespace).List(b.Context(), metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		b.missing = append(b.missing, fmt.Sprintf("events: %v", err))
		return nil
	}
	var lines strings.Builder
	for _, e := range list.Items {
		if e.Source.Host != "" { // kubelets and daemons quote commands and outputs of containers
			e.Message = removed
		}
		fmt.Fprintf(&lines, "%s %s %s/%s %s: %s (%d times)\n", e.LastTimestamp.UTC().Format(time.RFC3339),
			e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Reason, e.Message, e.Count)
	}
	return b.addText("events.txt", lines.String())
}

// logs packs the ends of the logs of managers and daemons.
func (b *bundle) logs() error {
	clients, err := b.Factory.KubernetesClientSet()
	if err != nil {
		return err
	}
	pods, err := clients.CoreV1().Pods(b.system).List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.missing = append(b.missing, fmt.Sprintf("logs of %s: %v", b.system, err))
		return nil
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Spec.Containers {
			ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
			text, err := clients.CoreV1().Pods(b.system).GetLogs(pod.Name, &corev1.PodLogOptions{
				Container: c.Name, TailLines: ptr.To(b.lines),
			}).DoRaw(ctx)
			cancel()
			if err != nil {
				b.missing = append(b.missing, fmt.Sprintf("log of %s/%s: %v", pod.Name, c.Name, err))
				continue
			}
			if err := b.addText("logs/"+pod.Name+"-"+c.Name+".log", string(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bundle) add(name string, v any) error {
	data, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	return b.addText(name, string(data))
}

func (b *bundle) addText(name, text string) error {
	header := &tar.Header{
		Name: "kruise-diagnose/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.clock.Now(), Typeflag: tar.TypeReg,
	}
	if err := b.files.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.WriteString(b.files, text)
	return err
}
