package create

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/create"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// New returns the command create of kubectl with subcommands for our kinds.
func New(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := create.NewCmdCreate(f, streams)
	cmd.AddCommand(newBroadcastJob(f, streams), newRecreateRequest(f, streams))
	return cmd
}

// addFlags adds the flags of all create commands.
func addFlags(cmd *cobra.Command) {
	genericclioptions.NewPrintFlags("").AddFlags(cmd)
	cmdutil.AddDryRunFlag(cmd)
	cmdutil.AddValidateFlags(cmd)
	cmdutil.AddApplyAnnotationFlags(cmd)
	manager := ""
	cmdutil.AddFieldManagerFlagVar(cmd, &manager, "kubectl kruise-create")
}

func newBroadcastJob(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var image, from string
	cmd := &cobra.Command{
		Use:     "broadcastJob NAME --image=image [--from=acj/name] -- [COMMAND] [args...]",
		Aliases: []string{"broadcastjob", "bcj"},
		Short:   "Create a BroadcastJob with the specified name",
		Example: "  # Create a BroadcastJob with an image\n" +
			"  kubectl kruise create broadcastJob my-job --image=busybox -- date\n\n" +
			"  # Create a BroadcastJob from an AdvancedCronJob\n" +
			"  kubectl kruise create broadcastJob my-job --from=acj/a-cronjob",
	}
	addFlags(cmd)
	cmd.Flags().StringVar(&image, "image", "", "Image name to run")
	cmd.Flags().StringVar(&from, "from", "", "The AdvancedCronJob to create the BroadcastJob from, such as acj/name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		if len(args) == 0 || (image == "") == (from == "") {
			return errors.New("exactly one NAME and one of --image and --from are required")
		}
		job, err := broadcastJob(c, args, image, from)
		if err != nil {
			return err
		}
		return send(c, kinds.BroadcastJob, args[0], job)
	}
	return cmd
}

// broadcastJob returns the job that the flags describe.
func broadcastJob(c target.Command, args []string, image, from string) (*v1beta1.BroadcastJob, error) {
	if from == "" {
		return BroadcastJob(args[0], image, args[1:]), nil
	}
	if len(args) > 1 {
		return nil, errors.New("cannot specify --from and command")
	}
	o, err := c.Named(from)
	if err != nil {
		return nil, err
	}
	return BroadcastJobFrom(args[0], o.Unstructured)
}

// BroadcastJob returns a job that runs an image on every node.
func BroadcastJob(name, image string, command []string) *v1beta1.BroadcastJob {
	job := &v1beta1.BroadcastJob{}
	job.Name = name
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: image, Command: command}}
	return job
}

// BroadcastJobFrom returns the job that an AdvancedCronJob would start.
func BroadcastJobFrom(name string, o *unstructured.Unstructured) (*v1beta1.BroadcastJob, error) {
	if !kinds.Is(o, kinds.AdvancedCronJob) {
		return nil, fmt.Errorf("from must be an existing AdvancedCronJob, %s is a %s", o.GetName(), o.GetKind())
	}
	cron, err := kinds.ReadAdvancedCronJob(o)
	if err != nil {
		return nil, err
	}
	template := cron.Spec.Template.BroadcastJobTemplate
	if template == nil {
		return nil, fmt.Errorf("advancedcronjob %s starts no BroadcastJobs", o.GetName())
	}
	job := &v1beta1.BroadcastJob{Spec: template.Spec}
	job.Name, job.Labels = name, template.Labels
	job.Annotations = map[string]string{"cronjob.kubernetes.io/instantiate": "manual"}
	maps.Copy(job.Annotations, template.Annotations)
	job.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(),
	}}
	return job, nil
}

func newRecreateRequest(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var pod string
	var containers []string
	var unready, started int64
	cmd := &cobra.Command{
		Use:     "ContainerRecreateRequest NAME --pod=pod [--containers=c1,c2]",
		Aliases: []string{"containerrecreaterequest", "crr", "CRR"},
		Short:   "Create a ContainerRecreateRequest, which restarts containers of a pod in place",
		Example: "  # Restart all containers of a pod\n" +
			"  kubectl kruise create crr restart-web --pod=web-0\n\n" +
			"  # Restart one container, five seconds after the pod has left its endpoints\n" +
			"  kubectl kruise create crr restart-web --pod=web-0 --containers=app -u 5",
	}
	addFlags(cmd)
	cmd.Flags().StringVarP(&pod, "pod", "p", "", "The name of the pod")
	cmd.Flags().StringSliceVar(&containers, "containers", nil, "The names of the containers: empty means all")
	cmd.Flags().Int64VarP(&unready, "unreadyGracePeriodSeconds", "u", 0,
		"How long the pod is not ready before its containers stop: 3 where the flag is missing")
	cmd.Flags().Int64VarP(&started, "minStartedSeconds", "m", 0,
		"How long a container runs before it counts as started: 3 where the flag is missing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		if len(args) != 1 || pod == "" {
			return errors.New("exactly one NAME and --pod are required")
		}
		o, err := c.Named("pods/" + strings.TrimPrefix(pod, "pod/"))
		if err != nil {
			return err
		}
		read, err := kinds.Read[corev1.Pod](o.Unstructured)
		if err != nil {
			return err
		}
		strategy := DefaultStrategy()
		if cmd.Flags().Changed("unreadyGracePeriodSeconds") {
			strategy.UnreadyGracePeriodSeconds = ptr.To(unready)
		}
		if cmd.Flags().Changed("minStartedSeconds") {
			strategy.MinStartedSeconds = int32(min(max(started, 0), 1<<30))
		}
		request, err := RecreateRequest(read, containers, strategy)
		if err != nil {
			return err
		}
		return send(c, "ContainerRecreateRequest", args[0], request)
	}
	return cmd
}

// DefaultStrategy returns the strategy of a request whose flags say nothing.
func DefaultStrategy() v1beta1.ContainerRecreateRequestStrategy {
	return v1beta1.ContainerRecreateRequestStrategy{
		FailurePolicy:             v1beta1.ContainerRecreateRequestFailurePolicyFail,
		UnreadyGracePeriodSeconds: ptr.To[int64](3), MinStartedSeconds: 3,
	}
}

// RecreateRequest returns a request that restarts containers of a pod: all of them where names is empty. Admission
// takes hooks and ports from the pod, and forbids requests to have them.
func RecreateRequest(
	pod *corev1.Pod, names []string, strategy v1beta1.ContainerRecreateRequestStrategy,
) (*v1beta1.ContainerRecreateRequest, error) {
	request := &v1beta1.ContainerRecreateRequest{Spec: v1beta1.ContainerRecreateRequestSpec{
		PodName: pod.Name, Strategy: &strategy,
		ActiveDeadlineSeconds: ptr.To[int64](300), TTLSecondsAfterFinished: ptr.To[int32](1800),
	}}
	for _, name := range names {
		if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			return nil, fmt.Errorf("pod %s has no container %q", pod.Name, name)
		}
	}
	for _, container := range pod.Spec.Containers {
		if len(names) > 0 && !slices.Contains(names, container.Name) {
			continue
		}
		one := v1beta1.ContainerRecreateRequestContainer{Name: container.Name}
		request.Spec.Containers = append(request.Spec.Containers, one)
	}
	return request, nil
}

// send creates an object of a kind of apps.kruise.io in the version that the API server prefers.
func send(c target.Command, kind, name string, o runtime.Object) error {
	mapper, err := c.Factory.ToRESTMapper()
	if err != nil {
		return err
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: kinds.Apps, Kind: kind})
	if err != nil {
		return err
	}
	written, err := kinds.Write(mapping.GroupVersionKind, o)
	if err != nil {
		return err
	}
	namespace, _, err := c.Factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	written.SetNamespace(namespace)
	written.SetName(name)
	created, err := c.Create(written)
	if err != nil {
		return err
	}
	return c.Print(created, "created")
}
