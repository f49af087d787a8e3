package pods

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/exec"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// NewExec returns the command exec of kubectl, which also finds the pods of our workloads and the working container of
// a sidecar that upgrades without a gap.
func NewExec(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := exec.NewCmdExec(f, streams)
	kubectl := cmd.Run
	cmd.Run = nil
	cmd.Flags().StringP("sidecar", "S", "", "The name of a container of a SidecarSet that upgrades hot: enters the "+
		"container of the pair that works now")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
			kubectl(cmd, args)
			return nil
		}
		name, err := podName(c, args[0])
		if err != nil {
			return err
		}
		if err := enterSidecar(c, name); err != nil {
			return err
		}
		kubectl(cmd, append([]string{name}, args[1:]...))
		return nil
	}
	return cmd
}

// podName returns what kubectl calls the pod of an argument: the argument itself where it names no workload of ours.
func podName(c target.Command, arg string) (string, error) {
	namespace, _, err := c.Factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", err
	}
	infos, err := c.Factory.NewBuilder().Unstructured().NamespaceParam(namespace).DefaultNamespace().
		ResourceNames("pods", arg).Flatten().Do().Infos()
	if err != nil {
		return "", err
	}
	if len(infos) != 1 || !kinds.IsOurs(infos[0].Mapping.GroupVersionKind.GroupKind()) {
		return arg, nil
	}
	o, err := target.New(infos[0])
	if err != nil {
		return "", err
	}
	own, err := Of(c, o)
	if err != nil {
		return "", err
	}
	pod := Choose(own)
	if pod == nil {
		return "", fmt.Errorf("%s has no running pod", arg)
	}
	return pod.Name, nil
}

// Choose returns the pod to enter: the first by name that is ready, else the first that runs, else nil.
func Choose(all []*corev1.Pod) *corev1.Pod {
	for _, suits := range []func(*corev1.Pod) bool{
		podutils.IsPodReady,
		func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning },
	} {
		if at := slices.IndexFunc(all, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && suits(p) }); at >= 0 {
			return all[at]
		}
	}
	return nil
}

// enterSidecar sets the flag --container to the container of a pair that works now.
func enterSidecar(c target.Command, name string) error {
	sidecar := c.Text("sidecar")
	if sidecar == "" {
		return nil
	}
	clients, err := c.Factory.KubernetesClientSet()
	if err != nil {
		return err
	}
	namespace, _, err := c.Factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	pod, err := clients.CoreV1().Pods(namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	working, err := WorkingContainer(pod, sidecar)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOut, "Enter working container %s of SidecarSet.\n", working)
	return c.Flags().Set("container", working)
}

// WorkingContainer returns the container of a hot-upgrade pair that works now: the name itself where there is no pair.
func WorkingContainer(pod *corev1.Pod, sidecar string) (string, error) {
	const key = kruise.SidecarSetWorkingHotUpgradeContainerKey
	text := pod.Annotations[key]
	if text == "" {
		return sidecar, nil
	}
	working := map[string]string{}
	if err := json.Unmarshal([]byte(text), &working); err != nil {
		return "", fmt.Errorf("read annotation %s of pod %s: %w", key, pod.Name, err)
	}
	if working[sidecar] == "" {
		return sidecar, nil
	}
	return working[sidecar], nil
}
