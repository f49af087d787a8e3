package containerrestart_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
)

// FuzzDescribe reads what anybody may have written into the annotation.
func FuzzDescribe(f *testing.F) {
	f.Add("", "metadata.annotations['conf']", "p_1")
	f.Add(`{"containers":[{"name":"app","containerID":"containerd://app-0","hashes":{"extractedEnvFromMetadataHash":1}}]}`,
		"metadata.labels['']", "p_")
	f.Add(`{"containers":null}`, "metadata.name", "")
	f.Add(`{"containers":[{},{}]}`, "", "p_99999999999999999999")
	f.Fuzz(func(t *testing.T, annotation, path, barrier string) {
		p := newPod(owned, updating, annotated(kruise.RuntimeContainerMetaKey, annotation),
			priority(0, barrier), priority(1, "p_1"))
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{
			Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}},
		})
		view := containerrestart.View{
			Pod:          p,
			Env:          true,
			Containers:   []containerrestart.Container{up("app", 0, 0), up("log", 0, 0)},
			Environments: map[string]map[string]string{id("app", 0): {"A": ""}},
		}
		d, err := containerrestart.Describe(view)
		if err != nil {
			t.Fatal(err)
		}
		if d.Annotation == "" {
			return
		}
		var set kruise.RuntimeContainerMetaSet
		if err := json.Unmarshal([]byte(d.Annotation), &set); err != nil || len(set.Containers) != 2 {
			t.Fatalf("wrote %s: %v", d.Annotation, err)
		}
		annotated(kruise.RuntimeContainerMetaKey, d.Annotation)(p)
		if again, err := containerrestart.Describe(view); err != nil || again.Annotation != "" {
			t.Fatalf("what was written is written again: %s, %v", again.Annotation, err)
		}
	})
}

// FuzzReadContainer reads what anybody may have written on a container, and stops it.
func FuzzReadContainer(f *testing.F) {
	f.Add("1", "5", "30", `{"httpGet":{"port":"web","path":"/"}}`, `[{"name":"web","containerPort":8080}]`)
	f.Add("-1", "-5", "9223372036854775807", `{"sleep":{"seconds":-1}}`, `[{}]`)
	f.Add("x", "", "", `{"httpGet":{"port":0,"path":"http://[::1"}}`, "null")
	f.Fuzz(func(t *testing.T, count, deletion, termination, hook, ports string) {
		c := containerrestart.ReadContainer(id("app", 0), map[string]string{"io.kubernetes.container.name": "app"},
			map[string]string{
				"io.kubernetes.container.restartCount":     count,
				"io.kubernetes.pod.deletionGracePeriod":    deletion,
				"io.kubernetes.pod.terminationGracePeriod": termination,
				"io.kubernetes.container.preStopHandler":   hook,
				"io.kubernetes.container.ports":            ports,
			})
		c.State = containerrestart.StateRunning
		p := newPod(owned, updating, fed(0, "conf"), annotated("conf", "2"), told(meta("app", 0, 7, 1)))
		d, err := containerrestart.Describe(containerrestart.View{
			Pod: p, Containers: []containerrestart.Container{c}, Env: true,
		})
		if err != nil || len(d.Restart) != 1 {
			t.Fatalf("got %+v, %v", d, err)
		}
		k := d.Restart[0]
		if k.Grace < 0 || k.StopWithin(time.Second) < 2*time.Second || k.Grace == 0 && k.Hook != nil {
			t.Errorf("stopped within %v: %+v", k.StopWithin(time.Second), k)
		}
		if h := k.Hook; h != nil && h.Err == nil && len(h.Exec) == 0 && h.HTTP == nil && h.Sleep == nil &&
			c.PreStop.Exec == nil {
			t.Errorf("a hook that does nothing: %+v", h)
		}
	})
}

// FuzzRuntimeOf reads what stands in a request.
func FuzzRuntimeOf(f *testing.F) {
	f.Add("containerd://a", "containerd://b")
	f.Add("://", "")
	f.Add("a://b://c", "a://")
	f.Fuzz(func(t *testing.T, a, b string) {
		r := admitted()
		r.Spec.Containers[0].StatusContext.ContainerID, r.Spec.Containers[1].StatusContext.ContainerID = a, b
		runtime, err := containerrestart.RuntimeOf(r, []string{"", "containerd"})
		if err == nil &&
			(runtime != "containerd" || !strings.HasPrefix(a, "containerd://") || !strings.HasPrefix(b, "containerd://")) {
			t.Errorf("%q, %q: %q", a, b, runtime)
		}
	})
}
