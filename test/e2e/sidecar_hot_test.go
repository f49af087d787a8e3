//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// handover pushes images of examples/handover: what they do is their first argument, and what else tells them apart.
func (m *deployed) handover(t *testing.T, tags ...string) map[string]image.Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), "handover")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program,
		"../../examples/handover")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]image.Image{}
	for _, tag := range tags {
		does := "serve"
		if tag == "idle" {
			does = tag
		}
		images[tag] = m.Push(t, image.Spec{
			Name: "sidecars/handover:" + tag, Scratch: true, Labels: map[string]string{"tag": tag},
			Files: map[string][]byte{"/handover": content}, Entrypoint: []string{"/handover", does},
		})
	}
	return images
}

// A proxy before an application is replaced under load, by one that takes its connections over.
func (m *deployed) testSidecarHot(t *testing.T) {
	images := m.handover(t, "1", "2", "idle")
	s := m.newMeshed(t, 2, func(set *v1beta1.SidecarSet) {
		proxy := v1beta1.SidecarContainer{Container: corev1.Container{Name: "proxy", Image: images["1"].Name}}
		proxy.VolumeMounts = []corev1.VolumeMount{{Name: "handover", MountPath: "/run/handover"}}
		proxy.Lifecycle = &corev1.Lifecycle{
			PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/handover", "migrate"}}},
		}
		proxy.UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{
			UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: images["idle"].Name,
		}
		set.Spec.Containers = []v1beta1.SidecarContainer{proxy}
		set.Spec.Volumes = []corev1.Volume{{
			Name: "handover", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		}}
	})
	load := newPodLoad(t, s.was)
	load.grow(t, 200)
	// Forth, and back to the image of before.
	for i, tag := range []string{"2", "1"} {
		s.change(t, func(spec *v1beta1.SidecarSetSpec) { spec.Containers[0].Image = images[tag].Name })
		at := []string{"proxy-2", "proxy-1"}[i]
		s.waitFor(t, "image "+tag+" in "+at, func(pods map[string]*corev1.Pod) error {
			for name, pod := range pods {
				if err := upgraded(pod, at, images[tag], images["idle"]); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return s.status(t, 2, 2, 2)
		})
		load.grow(t, 200)
	}
	load.end(t)
	s.kept(t, map[string]int32{"proxy-1": 2, "proxy-2": 2})
}

// upgraded says what keeps one container of a hot upgrade from being at work alone.
func upgraded(pod *corev1.Pod, at string, serves, idle image.Image) error {
	other := map[string]string{"proxy-1": "proxy-2", "proxy-2": "proxy-1"}[at]
	work, rest := statuses(pod)[at], statuses(pod)[other]
	if !runs(work, serves) || !runs(rest, idle) || !ready(pod) {
		return fmt.Errorf("%s runs %s and %s runs %s", at, work.ImageID, other, rest.ImageID)
	}
	if want := `{"proxy":"` + at + `"}`; pod.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey] != want {
		return fmt.Errorf("at work is %s, want %s", pod.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey], want)
	}
	return nil
}

// podLoad asks the sidecar of each pod all the time, over connections that are kept and over new ones.
type podLoad struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	begun   time.Time

	lock    sync.Mutex
	by      map[string]int // sidecar version
	failed  []error
	slowest time.Duration
}

func newPodLoad(t *testing.T, pods map[string]*corev1.Pod) *podLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &podLoad{cancel: cancel, by: map[string]int{}, begun: time.Now()}
	for _, pod := range pods {
		for _, fresh := range []bool{false, true} {
			asker := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: fresh}}
			l.running.Add(1)
			go func() {
				defer l.running.Done()

				pause := time.NewTicker(5 * time.Millisecond)
				defer pause.Stop()
				for ; ctx.Err() == nil; <-pause.C {
					l.one(asker, "http://"+pod.Status.PodIP+":8080")
				}
			}()
		}
	}
	return l
}

func (l *podLoad) one(asker *http.Client, url string) {
	begin := time.Now()
	version, err := asked(asker, url)
	l.lock.Lock()
	defer l.lock.Unlock()
	l.slowest = max(l.slowest, time.Since(begin))
	if err != nil {
		l.failed = append(l.failed, err)
		return
	}
	l.by[version]++
}

// asked is the version of the sidecar that passed on a request.
func asked(asker *http.Client, url string) (string, error) {
	response, err := asker.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil || string(page) != "application" {
		return "", errors.Join(fmt.Errorf("%s with %q", response.Status, page), err)
	}
	return response.Header.Get("Sidecar-Version"), nil
}

// grow waits for so many more answers.
func (l *podLoad) grow(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		l.lock.Lock()
		defer l.lock.Unlock()
		all := len(l.failed)
		for _, by := range l.by {
			all += by
		}
		return all
	}
	want := count() + n
	eventually(t, func(context.Context) error {
		if got := count(); got < want {
			return fmt.Errorf("%d requests, want %d", got, want)
		}
		return nil
	})
}

func (l *podLoad) end(t *testing.T) {
	t.Helper()
	l.cancel()
	l.running.Wait()
	t.Logf("%s of load: answered by version of the sidecar %v, slowest %s, failed %d",
		time.Since(l.begun).Round(time.Second/10), l.by, l.slowest.Round(time.Millisecond), len(l.failed))
	if len(l.by) < 3 {
		t.Errorf("the versions %v answered, want three", l.by)
	}
	for _, err := range slices.Compact(l.failed) {
		t.Errorf("a request failed: %v", err)
	}
}
