package sidecarset

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/sidecar/rollout"
)

func TestMatters(t *testing.T) {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: kind, Status: status, Message: message}}
		}
	}
	for name, c := range map[string]struct {
		why    string
		before func(*corev1.Pod)
		change func(*corev1.Pod)
		want   bool
	}{
		"a heartbeat":        {why: "nothing of it is looked at", change: func(p *corev1.Pod) { p.Status.HostIP = "10.0.0.1" }},
		"an annotation":      {why: "it is somebody's", change: func(p *corev1.Pod) { p.Annotations = map[string]string{"k": "v"} }},
		"words of readiness": {why: "it is not ready as before", before: condition(corev1.PodReady, "False", "a, b"), change: condition(corev1.PodReady, "False", "a")},
		"restarts":           {why: "they only tell an order", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount++ }},
		"a record":           {why: "another one may have written it", change: func(p *corev1.Pod) { p.Annotations = map[string]string{pub.SidecarSetHashKey: "{}"} }, want: true},
		"readiness":          {why: "it is counted", change: condition(corev1.PodReady, "True", ""), want: true},
		"its condition":      {why: "another set may have undone it", before: condition(pub.SidecarSetUpgradable, "True", `{"a":true}`), change: condition(pub.SidecarSetUpgradable, "True", `{"b":true}`), want: true},
		"an image":           {why: "it may run now", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "x" }, want: true},
		"a container":        {why: "it is another one", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "x" }, want: true},
		"a ready container":  {why: "a hot upgrade may end", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = true }, want: true},
		"a label":            {why: "it may be another's now", change: func(p *corev1.Pod) { p.Labels = map[string]string{"k": "v"} }, want: true},
		"a deletion":         {why: "it is not counted", change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, want: true},
		"its end":            {why: "it is not counted", change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, want: true},
		"the spec":           {why: "somebody wrote it", change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "x" }, want: true},
		"another pod":        {why: "nobody saw the first one go", change: func(p *corev1.Pod) { p.UID = "other" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", ResourceVersion: "1"}}
			before.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
			before.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
			if c.before != nil {
				c.before(before)
			}
			after := before.DeepCopy()
			c.change(after)
			if matters(before, after) {
				t.Error("a resync says nothing")
			}
			after.ResourceVersion = "2"
			if got := matters(before, after); got != c.want {
				t.Errorf("%s: got %t", c.why, got)
			}
		})
	}
}

func TestPause(t *testing.T) {
	r, err := New(&warehouse{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for took, want := range map[time.Duration]time.Duration{
		0: shortestPause, time.Millisecond: shortestPause, 100 * time.Millisecond: 500 * time.Millisecond, time.Minute: time.Second,
	} {
		r.memory.took("s", r, took)
		if got := r.memory.pause("s"); got != want {
			t.Errorf("to look and plan takes %s: want %s, got %s", took, want, got)
		}
	}
	if got := r.memory.pause("other"); got != shortestPause {
		t.Errorf("of a set that is not known: got %s", got)
	}
}

func TestErrors(t *testing.T) {
	spec := &rollout.SpecError{Field: "spec.selector", Err: errors.New("odd")}
	other := errors.New("other")
	for name, c := range map[string]struct {
		err      error
		terminal bool
	}{
		"the spec":        {spec, true},
		"only the spec":   {errors.Join(nil, errors.Join(spec, spec)), true},
		"and another":     {errors.Join(spec, other), false},
		"not at all":      {other, false},
		"said by another": {fmt.Errorf("pass: %w", other), false},
	} {
		if got := errors.Is(outcome(c.err), reconcile.TerminalError(nil)); got != c.terminal {
			t.Errorf("%s: tried again: %t", name, !got)
		}
	}
	for name, c := range map[string]struct {
		err            error
		refusal, maybe bool
	}{
		"forbidden":   {err: apierrors.NewForbidden(corev1.Resource("pods"), "a", other), refusal: true, maybe: true},
		"a webhook":   {err: apierrors.NewInternalError(other), maybe: true},
		"too many":    {err: apierrors.NewTooManyRequests("wait", 1)},
		"not started": {err: apierrors.NewServiceUnavailable("wait")},
		"broken":      {err: other},
	} {
		wrapped := fmt.Errorf("update pod: %w", c.err)
		if isRefusal(wrapped) != c.refusal || mayBeRefusal(wrapped) != c.maybe {
			t.Errorf("%s: a refusal: %t, maybe: %t", name, isRefusal(wrapped), mayBeRefusal(wrapped))
		}
	}
}

// TestSame: what two revisions hold is compared by what it means.
func TestSame(t *testing.T) {
	set := &v1beta1.SidecarSet{}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "mesh", Image: "mesh:1"}}}
	data, err := encode(set)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"spec":{"$patch":"replace","containers":[{"image":"mesh:1","name":"mesh","resources":{},"shareVolumePolicy":{},"upgradeStrategy":{}}],` +
		`"imagePullSecrets":null,"initContainers":null,"patchPodMetadata":null,"volumes":null}}`
	if string(data) != want {
		t.Errorf("want %s, got %s", want, data)
	}
	set.Spec.Volumes, set.Spec.InitContainers = []corev1.Volume{}, []v1beta1.SidecarContainer{}
	if data, err = encode(set); err != nil || string(data) != want {
		t.Errorf("empty lists: want %s, got %s, %v", want, data, err)
	}
	for text, want := range map[string]bool{
		want: true,
		`{"spec":{"containers":[{"name":"mesh","image":"mesh:1"}],"volumes":[]}}`: true,
		`{"spec":{"containers":[{"name":"mesh","image":"mesh:2"}]}}`:              false,
		`{}`: false, `{`: false,
	} {
		if got := same(data, []byte(text)); got != want {
			t.Errorf("%s: want %t", text, want)
		}
	}
}
