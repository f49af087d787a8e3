//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/image"
	"github.com/kruisekit/kruisekit/write"
)

// testInPlace applies the changes whose outcome the kubelet decides. The tests of package inplace show the others.
func testInPlace(t *testing.T, c *cluster.Cluster) {
	namespace := c.Namespace(t)
	one, two := c.Push(t, image.Spec{Name: "inplace/web:1"}), c.Push(t, image.Spec{Name: "inplace/web:2"})
	if err := c.Client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "barrier"},
		Data:       map[string]string{"p_1": "true", "p_2": "true"},
	}); err != nil {
		t.Fatal(err)
	}
	resize := inplace.Policy{Env: inplace.EnvRestart, Resources: inplace.ResourcesAdded}
	cases := map[string]struct {
		why      string
		template func(*corev1.PodTemplateSpec) // before
		change   func(*corev1.PodTemplateSpec)
		options  inplace.Policy
		writes   int
		restarts map[string]int32
		ready    bool // all the time
	}{
		"the same image by its digest": {
			why:    "another name, the same ID: the container ID tells",
			change: func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "inplace/web@" + one.Digest },
			writes: 3, restarts: map[string]int32{"web": 1},
		},
		"cpu": {
			why:      "no restart, no unreadiness",
			template: func(p *corev1.PodTemplateSpec) { requests(p, "cpu", "10m") },
			change:   func(p *corev1.PodTemplateSpec) { requests(p, "cpu", "20m") },
			options:  resize, writes: 2, ready: true,
		},
		"memory and image": {
			why: "a restart for both",
			template: func(p *corev1.PodTemplateSpec) {
				requests(p, "memory", "10Mi")
				p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{
					ResourceName: "memory", RestartPolicy: corev1.RestartContainer,
				}}
			},
			change: func(p *corev1.PodTemplateSpec) {
				requests(p, "memory", "20Mi")
				p.Spec.Containers[0].Image = two.Name
			},
			options: resize, writes: 4, restarts: map[string]int32{"web": -1},
		},
		"in the order of launch": {
			why: "the second batch waits for the first",
			template: func(p *corev1.PodTemplateSpec) {
				barrier(&p.Spec.Containers[0], "p_1")
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "first", Image: one.Name})
				barrier(&p.Spec.Containers[1], "p_2")
			},
			change: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Image, p.Spec.Containers[1].Image = two.Name, two.Name
			},
			writes: 4, restarts: map[string]int32{"web": 1, "first": 1},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: new(int64),
				ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
				Containers:                    []corev1.Container{{Name: "web", Image: one.Name}},
			}}
			if test.template != nil {
				test.template(template)
			}
			u := &updater{client: c.Client}
			u.create(t, namespace, template)
			to := template.DeepCopy()
			test.change(to)
			change, err := inplace.Diff(template, to, test.options)
			if err != nil {
				t.Fatal(err)
			}
			last := u.update(t, inplace.Update{Change: change, Revision: "v2"})
			if last.Verdict != inplace.Complete {
				t.Errorf("%s: it ended with %s %v", test.why, last.Verdict, last.Notes)
			}
			if u.writes != test.writes {
				t.Errorf("%s: %d writes, want %d: %s", test.why, u.writes, test.writes, strings.Join(u.story, ", "))
			}
			if test.ready && u.unready {
				t.Errorf("%s: the pod was not ready meanwhile", test.why)
			}
			u.settled(t, test.restarts)
		})
	}
}

// What is not free on a node is put off by the kubelet. What the node can never give is refused by API servers from
// 1.36 on, which changes nothing, and by the kubelet before.
func testResizeBeyondTheNode(t *testing.T, c *cluster.Cluster) {
	namespace := c.Namespace(t)
	web := c.Push(t, image.Spec{Name: "inplace/web:1"})
	var nodes corev1.NodeList
	if err := c.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	node := &nodes.Items[0]
	all := node.Status.Allocatable.Cpu().MilliValue()
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64),
		NodeSelector:                  map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]},
		Containers:                    []corev1.Container{{Name: "web", Image: web.Name}},
	}}
	other := &updater{client: c.Client}
	requests(template, "cpu", fmt.Sprintf("%dm", all/2))
	other.create(t, namespace, template)

	requests(template, "cpu", "10m")
	u := &updater{client: c.Client, until: inplace.NoteDeferred}
	u.create(t, namespace, template)
	change := func(cpu int64) *inplace.Change {
		to := template.DeepCopy()
		requests(to, "cpu", fmt.Sprintf("%dm", cpu))
		change, err := inplace.Diff(template, to, inplace.Policy{
			Env: inplace.EnvRestart, Resources: inplace.ResourcesReplaced,
		})
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	never, refused := inplace.Update{Change: change(2 * all), Revision: "never"}, c.Minor(t) >= 36
	if refused {
		_, err := u.look(t.Context(), never)
		if !apierrors.IsForbidden(err) || u.writes != 0 || u.pod.Labels[kruise.PodRevisionLabelKey] != "v1" {
			t.Errorf("more than the node has: %v after %d writes, the pod is at %s",
				err, u.writes, u.pod.Labels[kruise.PodRevisionLabelKey])
		}
	}
	last := u.update(t, inplace.Update{Change: change(all * 3 / 4), Revision: "v2"})
	if last.Verdict != inplace.Wait {
		t.Errorf("more than is free: %+v", last)
	}
	t.Log(last.Notes)
	if refused {
		return
	}
	u.until = inplace.NoteInfeasible
	last = u.update(t, never)
	if last.Verdict != inplace.Wait {
		t.Errorf("more than the node has: %+v", last)
	}
}

// updater leads one pod, looking at the live pod only.
type updater struct {
	client client.Client
	// until is the code of the note at which update returns; empty for none.
	until   string
	pod     *corev1.Pod
	writes  int
	unready bool
	story   []string
}

func (u *updater) create(t *testing.T, namespace string, template *corev1.PodTemplateSpec) {
	t.Helper()
	u.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "pod-", Labels: map[string]string{kruise.PodRevisionLabelKey: "v1"},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if err := u.client.Create(t.Context(), u.pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		action, err := u.look(ctx, inplace.Update{Revision: "v1"})
		if err == nil && (action.Verdict != inplace.Complete || !ready(u.pod)) {
			err = fmt.Errorf("%s, conditions %v", action.Verdict, u.pod.Status.Conditions)
		}
		return err
	})
	u.writes, u.story, u.unready = 0, nil, false
}

// update leads the pod until nothing is to be done, or the pod waits for what is not to come.
func (u *updater) update(t *testing.T, to inplace.Update) inplace.Action {
	t.Helper()
	var action inplace.Action
	eventually(t, func(ctx context.Context) error {
		var err error
		if action, err = u.look(ctx, to); err != nil {
			return err
		}
		if u.writes > 20 || action.Verdict == inplace.Wait && (len(action.Notes) == 0 || action.After <= 0) {
			t.Fatalf("it waits without a reason or a time: %+v", action)
		}
		stops := u.until != "" && len(action.Notes) > 0 && action.Notes[0].Code == u.until
		if action.Verdict != inplace.Complete && !stops {
			return fmt.Errorf("%s: %v", action.Verdict, action.Notes)
		}
		return nil
	})
	return action
}

// look reads the pod, and writes what is to be written.
func (u *updater) look(ctx context.Context, to inplace.Update) (inplace.Action, error) {
	if err := u.client.Get(ctx, client.ObjectKeyFromObject(u.pod), u.pod); err != nil {
		return inplace.Action{}, err
	}
	for {
		u.unready = u.unready || !ready(u.pod)
		to.Pod = u.pod
		action, err := inplace.Next(to, inplace.Policy{}, time.Now())
		if err != nil || action.Verdict != inplace.Write {
			return action, err
		}
		patch, err := action.Write.Data()
		if err != nil {
			return action, err
		}
		if err := u.send(ctx, action.Write.Subresource, patch); err != nil {
			if apierrors.IsInvalid(err) {
				return action, nil // the kubelet was faster: look again
			}
			return action, err
		}
		if u.writes++; u.writes > 20 {
			return action, fmt.Errorf("it writes again and again: %s", strings.Join(u.story, ", "))
		}
		u.story = append(u.story, fmt.Sprintf("%q %s", action.Write.Subresource, patch))
	}
}

func (u *updater) send(ctx context.Context, subresource string, patch []byte) error {
	raw := client.RawPatch(types.JSONPatchType, patch)
	if subresource == write.Main {
		return u.client.Patch(ctx, u.pod, raw)
	}
	return u.client.SubResource(subresource).Patch(ctx, u.pod, raw)
}

// settled waits until the pod is ready and its containers have restarted as often as wanted: -1 is at least once.
func (u *updater) settled(t *testing.T, restarts map[string]int32) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if err := u.client.Get(ctx, client.ObjectKeyFromObject(u.pod), u.pod); err != nil {
			return err
		}
		for _, s := range append(u.pod.Status.ContainerStatuses, u.pod.Status.InitContainerStatuses...) {
			want := restarts[s.Name]
			if want < 0 && s.RestartCount == 0 || want >= 0 && s.RestartCount != want {
				return fmt.Errorf("%s restarted %d times, want %d", s.Name, s.RestartCount, want)
			}
		}
		if !ready(u.pod) {
			return fmt.Errorf("not ready: %v", u.pod.Status.Conditions)
		}
		return nil
	})
}

func requests(p *corev1.PodTemplateSpec, name corev1.ResourceName, amount string) {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(amount)}
}

// barrier gives a container a launch priority.
func barrier(c *corev1.Container, key string) {
	c.Env = append(c.Env, corev1.EnvVar{Name: kruise.ContainerLaunchBarrierEnvName, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "barrier"}, Key: key,
		},
	}})
}
