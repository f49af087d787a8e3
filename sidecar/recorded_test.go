package sidecar_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

func recorded(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("../test/compat/testdata/recorded/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func recordedSets(t *testing.T, step string) []v1beta1.SidecarSet {
	t.Helper()
	list := v1beta1.SidecarSetList{}
	recorded(t, step+"/sidecarsets.v1beta1.yaml", &list)
	if len(list.Items) == 0 {
		t.Fatal("there are no sets")
	}
	return list.Items
}

// TestRecordedRevisions restores each revision that a running reference stored, and hashes what comes out.
func TestRecordedRevisions(t *testing.T) {
	list := appsv1.ControllerRevisionList{}
	recorded(t, "1-created/sidecarset-revisions.yaml", &list)
	if len(list.Items) == 0 {
		t.Fatal("there are no revisions")
	}
	for i := range list.Items {
		r := &list.Items[i]
		set := sidecarSet(r.Labels[v1beta1.SidecarSetNameLabel], of(container("now")), pins(&r.Name, nil, ""))
		got, err := sidecar.Resolve(parse(set)[0], podOf(), []*appsv1.ControllerRevision{r}, 0)
		if err != nil {
			t.Fatal(err)
		}
		full, bare := hashes(t, got.Object())
		want := []string{r.Annotations[kruise.SidecarSetHashKey], r.Annotations[kruise.SidecarSetHashWithoutImageKey], r.Name}
		if diff := cmp.Diff(want, []string{full, bare, got.Object().Status.LatestRevision}); diff != "" {
			t.Errorf("%s (-recorded +ours):\n%s", r.Name, diff)
		}
	}
}

// TestRecordedPods takes out of recorded pods what a running reference injected, and injects it again.
func TestRecordedPods(t *testing.T) {
	for _, name := range []string{"meshed", "hot"} {
		t.Run(name, func(t *testing.T) {
			want := recordedPod(t, name)
			var sets []*v1beta1.SidecarSet
			for _, set := range recordedSets(t, "1-created") {
				sets = append(sets, &set)
			}
			namespace := &corev1.Namespace{}
			namespace.Labels = pairs(corev1.LabelMetadataName, want.Namespace)
			bare := stripped(want, sets)
			selection, err := sidecar.Select(bare, namespace, parse(sets...))
			if err != nil {
				t.Fatal(err)
			}
			if len(selection.Sets) != 1 || len(bare.Spec.Containers) != 1 {
				t.Fatalf("%d sets for %v", len(selection.Sets), names(bare.Spec.Containers))
			}
			got, notes := inject(t, bare, sidecar.Options{Now: injectedAt(t, want), SortContainers: true},
				objects(selection.Sets)...)
			if diff := cmp.Diff(withoutTokens(want), withoutTokens(got)); diff != "" || notes != nil {
				t.Errorf("%v (-recorded +ours):\n%s", notes, diff)
			}
			again, err := sidecar.Inject(want, selection.Sets, sidecar.Options{Now: noon(), SortContainers: true})
			if err != nil {
				t.Fatal(err)
			}
			if again.Pod != nil && !cmp.Equal(withoutTokens(want), withoutTokens(again.Pod)) {
				t.Errorf("what the reference injected is injected again: %s",
					cmp.Diff(withoutTokens(want), withoutTokens(again.Pod)))
			}
		})
	}
}

func objects(sets []*sidecar.Set) []*v1beta1.SidecarSet {
	var all []*v1beta1.SidecarSet
	for _, set := range sets {
		all = append(all, set.Object())
	}
	return all
}

func recordedPod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	list := corev1.PodList{}
	recorded(t, "1-created/pods.yaml", &list)
	i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no pod %s", name)
	}
	return &list.Items[i]
}

// stripped takes away the containers and volumes of the sets, and the annotations that tell of them.
func stripped(pod *corev1.Pod, sets []*v1beta1.SidecarSet) *corev1.Pod {
	bare := pod.DeepCopy()
	injected := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == kruise.SidecarInjectedEnvName })
	}
	bare.Spec.InitContainers = slices.DeleteFunc(bare.Spec.InitContainers, injected)
	if len(bare.Spec.InitContainers) == 0 {
		bare.Spec.InitContainers = nil
	}
	bare.Spec.Containers = slices.DeleteFunc(bare.Spec.Containers, injected)
	for _, set := range sets {
		bare.Spec.Volumes = slices.DeleteFunc(bare.Spec.Volumes, func(v corev1.Volume) bool {
			return slices.ContainsFunc(set.Spec.Volumes, func(of corev1.Volume) bool { return of.Name == v.Name })
		})
	}
	keys := []string{
		kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey, kruise.SidecarSetInjectedListKey,
		kruise.SidecarSetWorkingHotUpgradeContainerKey,
	}
	for _, prefix := range []string{kruise.SidecarSetVersionKeyPrefix, kruise.SidecarSetVersionAltKeyPrefix} {
		for _, c := range pod.Spec.Containers {
			keys = append(keys, prefix+c.Name)
		}
	}
	for _, key := range keys {
		delete(bare.Annotations, key)
	}
	return bare
}

// withoutTokens leaves out the mounts of the service account's token, which the API server adds also behind the
// webhooks, and the order of volumes, which is another where the API server added that of the token first.
func withoutTokens(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			isToken := func(m corev1.VolumeMount) bool { return m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount" }
			c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, isToken)
			if len(c.VolumeMounts) == 0 {
				c.VolumeMounts = nil
			}
		}
	}
	slices.SortFunc(pod.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	return pod
}

// injectedAt is the time that the pod records.
func injectedAt(t *testing.T, pod *corev1.Pod) time.Time {
	t.Helper()
	entries := map[string]kruise.SidecarSetInjected{}
	if err := json.Unmarshal([]byte(pod.Annotations[kruise.SidecarSetHashKey]), &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		return e.UpdateTimestamp.Time
	}
	t.Fatal("the pod records no set")
	return time.Time{}
}
