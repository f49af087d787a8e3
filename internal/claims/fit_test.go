package claims_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/claims"
)

func noon() time.Time { return time.Unix(1_800_000_000, 0).UTC() }

// claim is one of a size, of a volume with a capacity.
func claim(size, capacity string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-web-0", UID: "claim"}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	for _, change := range changes {
		change(c)
	}
	return c
}

func class(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func limited(c *corev1.PersistentVolumeClaim) {
	c.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
}

func unbound(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }

// remounts is a claim that has waited since a time for its volume to be mounted again.
func remounts(since time.Time) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type:               corev1.PersistentVolumeClaimFileSystemResizePending,
			Status:             corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(since),
		}}
	}
}

func TestCompare(t *testing.T) {
	type verdict struct{ Alike, Compatible, Ready, Complete bool }
	template := claim("2Gi", "0", class("fast"))
	for name, c := range map[string]struct {
		why   string
		claim *corev1.PersistentVolumeClaim
		want  verdict
	}{
		"equal":      {"the claim is what the template asks for", claim("2Gi", "2Gi"), verdict{true, true, true, true}},
		"other unit": {"amounts are compared, not texts", claim("2048Mi", "2147483648"), verdict{true, true, true, true}},
		"larger": {
			"a template that shrank concerns only new claims", claim("3Gi", "3Gi"), verdict{true, true, true, true},
		},
		"smaller": {"the claim must grow", claim("1Gi", "1Gi"), verdict{true, false, false, false}},
		"growing": {"the volume is not as large yet", claim("2Gi", "1Gi"), verdict{true, true, false, false}},
		"remount": {
			"a mount makes the file system grow", claim("2Gi", "1Gi", remounts(noon())), verdict{true, true, false, true},
		},
		"another class": {
			"no claim changes its class", claim("2Gi", "2Gi", class("slow")), verdict{false, false, false, false},
		},
		"access modes": {
			"they must be the same", claim("2Gi", "2Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = nil }),
			verdict{false, false, false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := claims.Compare(c.claim, template)
			if diff := cmp.Diff(c.want, verdict{f.Alike, f.Compatible, f.Ready(), f.Complete()}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	yes, no := true, false
	classes := claims.Classes{
		"fast": {AllowVolumeExpansion: &yes}, "slow": {AllowVolumeExpansion: &no}, "silent": &storagev1.StorageClass{},
		"gone": nil,
	}
	for name, c := range map[string]struct {
		why, refusal string
		claim        *corev1.PersistentVolumeClaim
	}{
		"allowed":   {"the class allows it", "", claim("1Gi", "1Gi", class("fast"))},
		"no class":  {"no class forbids it", "", claim("1Gi", "1Gi")},
		"limits":    {"API servers forbid every other change of a claim", "", claim("1Gi", "1Gi", limited)},
		"forbidden": {"the class says no", `"slow" does not allow`, claim("1Gi", "1Gi", class("slow"))},
		"silent":    {"nothing means no", `"silent" does not allow`, claim("1Gi", "1Gi", class("silent"))},
		"gone":      {"the class does not exist", `"gone" does not allow`, claim("1Gi", "1Gi", class("gone"))},
		"another class": {
			"it cannot become the template's", "has another storage class", claim("1Gi", "1Gi", class("other")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := claim("2Gi", "0")
			template.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("4Gi")}
			if name == "another class" {
				class("fast")(template)
			}
			w, err := claims.Expand(c.claim, template, "web", classes)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("%s: %v", c.why, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := w.Data()
			if err != nil {
				t.Fatal(err)
			}
			var ops []map[string]any
			if err := json.Unmarshal(data, &ops); err != nil {
				t.Fatal(err)
			}
			last := ops[len(ops)-1]
			want := map[string]any{
				"op": "replace", "path": "/spec/resources/requests/storage", "value": "2Gi",
			}
			if diff := cmp.Diff(want, last); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if !strings.Contains(string(data), `"apps.kruise.io/owned-by-asts"`) ||
				!strings.Contains(string(data), `"path":"/metadata/uid","value":"claim"`) {
				t.Errorf("the patch is %s", data)
			}
		})
	}
}

func TestNeedsRemount(t *testing.T) {
	pod := func(started time.Time) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(started)}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}}
		return p
	}
	early, now := noon().Add(-time.Hour), noon()
	for name, c := range map[string]struct {
		why   string
		claim *corev1.PersistentVolumeClaim
		pod   *corev1.Pod
		needs bool
		after time.Duration
	}{
		"just now": {
			why:   "the node may grow it yet",
			claim: claim("2Gi", "1Gi", remounts(now.Add(-30*time.Second))),
			pod:   pod(early),
			after: 90 * time.Second,
		},
		"persists": {
			why:   "only another mount helps",
			claim: claim("2Gi", "1Gi", remounts(now.Add(-2*time.Minute))),
			pod:   pod(early),
			needs: true,
		},
		"mounted since": {
			why:   "a pod that is newer has mounted it",
			claim: claim("2Gi", "1Gi", remounts(now.Add(-time.Hour))),
			pod:   pod(now.Add(-time.Minute)),
		},
		"grown": {"nothing is left to grow", claim("2Gi", "2Gi", remounts(early)), pod(early), false, 0},
		"still to grow": {
			why: "the claim is smaller than the template", claim: claim("1Gi", "1Gi", remounts(early)), pod: pod(early),
		},
		"not started": {
			why: "it has mounted nothing", claim: claim("2Gi", "1Gi", remounts(early.Add(time.Minute))), pod: &corev1.Pod{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			needs, after := claims.Compare(c.claim, claim("2Gi", "0")).NeedsRemount(c.pod, now)
			if needs != c.needs || after != c.after {
				t.Errorf("%s: %t, %s", c.why, needs, after)
			}
		})
	}
}
