package sidecar_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

const (
	retain    = v1beta1.SidecarSetRetainPatchPolicy
	overwrite = v1beta1.SidecarSetOverwritePatchPolicy
	mergeJSON = v1beta1.SidecarSetMergePatchJsonPatchPolicy
)

func TestInjectMetadata(t *testing.T) {
	cases := map[string]struct {
		why     string
		has     map[string]string
		changes []setChange
		want    map[string]string
		notes   []string
	}{
		"retain": {
			why:     "what is there stays",
			has:     pairs("k", "pod"),
			changes: []setChange{patches(retain, "k", "set")},
			want:    pairs("k", "pod"),
			notes:   []string{"AnnotationKept s"},
		},
		"retain empty": {
			why:     "an empty value is one",
			has:     pairs("k", ""),
			changes: []setChange{patches(retain, "k", "set")},
			want:    pairs("k", ""),
			notes:   []string{"AnnotationKept s"},
		},
		"no policy": {
			why:     "it means retain",
			has:     pairs("k", "pod"),
			changes: []setChange{patches("", "k", "set"), patches("", "l", "set")},
			want:    pairs("k", "pod", "l", "set"),
			notes:   []string{"AnnotationKept s"},
		},
		"overwrite": {
			why:     "what is there goes",
			has:     pairs("k", "pod"),
			changes: []setChange{patches(overwrite, "k", "set")},
			want:    pairs("k", "set"),
			notes:   []string{"AnnotationReplaced s"},
		},
		"an odd policy": {why: "it is not known what it means", changes: []setChange{patches("Odd", "k", "set")}},
		"merge deep": {
			why:     "objects are merged, lists replaced, null removes",
			has:     pairs("k", `{"a":{"b":1,"c":1},"l":[1,2],"n":0}`),
			changes: []setChange{patches(mergeJSON, "k", `{"a":{"c":2},"l":[3],"n":null}`)},
			want:    pairs("k", `{"a":{"b":1,"c":2},"l":[3]}`),
			notes:   []string{"AnnotationReplaced s"},
		},
		"merge a number": {
			why:     "a large number is not rounded",
			has:     pairs("k", `{"b":12345678901234567890}`),
			changes: []setChange{patches(mergeJSON, "k", `{"a":1.0}`)},
			want:    pairs("k", `{"a":1.0,"b":12345678901234567890}`),
			notes:   []string{"AnnotationReplaced s"},
		},
		"merge nothing new": {
			why:     "the text stays as it is written",
			has:     pairs("k", `{ "a": 1 }`),
			changes: []setChange{patches(mergeJSON, "k", `{"a":1}`)},
			want:    pairs("k", `{ "a": 1 }`),
		},
		"merge onto a list": {
			why:     "what is no object gives way to one",
			has:     pairs("k", `[1]`),
			changes: []setChange{patches(mergeJSON, "k", `{"a":{"b":null,"c":1}}`)},
			want:    pairs("k", `{"a":{"c":1}}`),
			notes:   []string{"AnnotationReplaced s"},
		},
		"merge into none": {
			why:     "the patch is written as it is",
			changes: []setChange{patches(mergeJSON, "k", ` {"a":null}`)},
			want:    pairs("k", ` {"a":null}`),
		},
		"a record": {
			why: "what pods record is wrong if sets write it",
			has: pairs(kruise.SidecarSetInjectedListKey, "former"),
			changes: []setChange{
				patches(overwrite, kruise.SidecarSetInjectedListKey, "x"), patches(mergeJSON, kruise.SidecarSetHashKey, "no JSON"),
				patches(retain, kruise.SidecarSetVersionKeyPrefix+"c-1", "7"),
			},
			want:  pairs(kruise.SidecarSetInjectedListKey, "former"),
			notes: []string{"AnnotationKept s", "AnnotationKept s", "AnnotationKept s"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf(own("main"))
			pod.Annotations = c.has
			got, notes := inject(t, pod, at(), sidecarSet("s", c.changes...))
			sameAs(t, c.why, c.want, got.Annotations)
			sameAs(t, "notes", c.notes, codes(notes))
		})
	}
}

// hashed gives a set the hashes h and h-bare, and a revision.
func hashed(h, revision string) setChange {
	return func(s *v1beta1.SidecarSet) {
		s.Annotations = pairs(kruise.SidecarSetHashKey, h, kruise.SidecarSetHashWithoutImageKey, h+"-bare")
		s.Status.LatestRevision = revision
	}
}

func TestInjectRecords(t *testing.T) {
	pod := podOf(own("main"))
	pod.Annotations = pairs(
		kruise.SidecarSetHashKey,
		`{"old":"legacy","same":{"updateTimestamp":"2020-01-01T00:00:00Z","hash":"h3","sidecarSetName":"same","sidecarList":["e"]}}`,
		kruise.SidecarSetHashWithoutImageKey, `{"a":"legacy"}`,
		kruise.SidecarSetInjectedListKey, "old,,same",
	)
	got, _ := inject(t, pod, sidecar.Options{Now: noon().In(time.FixedZone("", 3600))},
		sidecarSet("b", hashed("h2", ""), ofInit(container("plain"))), sidecarSet("a", hashed("h1", "a-1"),
			of(container("z"), container("y", hot("empty"))), ofInit(container("n", native), container("plain2"))),
		sidecarSet("same", hashed("h3", ""), of(container("e"))))
	const noon = `"updateTimestamp":"2026-11-21T12:00:00Z"`
	want := pairs(
		kruise.SidecarSetHashKey,
		`{"a":{`+noon+`,"hash":"h1","sidecarSetName":"a","sidecarList":["n","y","z"],"controllerRevision":"a-1"},`+
			`"b":{`+noon+`,"hash":"h2","sidecarSetName":"b","sidecarList":[]},`+
			`"old":{"updateTimestamp":null,"hash":"legacy","sidecarSetName":"old","sidecarList":null},`+
			`"same":{"updateTimestamp":"2020-01-01T00:00:00Z","hash":"h3","sidecarSetName":"same","sidecarList":["e"]}}`,
		kruise.SidecarSetHashWithoutImageKey,
		`{"a":{`+noon+`,"hash":"h1-bare","sidecarSetName":"a","sidecarList":["n","y","z"]},`+
			`"b":{`+noon+`,"hash":"h2-bare","sidecarSetName":"b","sidecarList":[]},`+
			`"same":{`+noon+`,"hash":"h3-bare","sidecarSetName":"same","sidecarList":["e"]}}`,
		kruise.SidecarSetInjectedListKey, "a,b,old,same",
		kruise.SidecarSetWorkingHotUpgradeContainerKey, `{"y":"y-1"}`,
		kruise.SidecarSetVersionKeyPrefix+"y-1", "1", kruise.SidecarSetVersionAltKeyPrefix+"y-1", "0",
		kruise.SidecarSetVersionKeyPrefix+"y-2", "0", kruise.SidecarSetVersionAltKeyPrefix+"y-2", "1",
	)
	sameAs(t, "what was injected, and that of others", want, got.Annotations)
}

func TestInjectRecordsHashesOfItsOwn(t *testing.T) {
	set := sidecarSet("s", of(container("c")))
	full, bare := hashes(t, set)
	got, _ := inject(t, podOf(own("main")), at(), set)
	for key, want := range map[string]string{kruise.SidecarSetHashKey: full, kruise.SidecarSetHashWithoutImageKey: bare} {
		entries := map[string]kruise.SidecarSetInjected{}
		if err := json.Unmarshal([]byte(got.Annotations[key]), &entries); err != nil {
			t.Fatal(err)
		}
		if entries["s"].Hash != want {
			t.Errorf("%s: a set that nobody hashed is hashed: want %s, got %v", key, want, entries)
		}
	}
}

func TestInjectHot(t *testing.T) {
	pod := podOf(own("main", env("COLOR", "blue")))
	pod.Annotations = pairs(kruise.SidecarSetWorkingHotUpgradeContainerKey, `{"other":"other-2"}`)
	c := container("x", hot("empty:1"), transfers("main", "COLOR"), core(env("A", "1")))
	got, _ := inject(t, pod, at(), sidecarSet("s", of(c), ofInit(container("mesh", native, hot("empty:2")))))
	version := func(env, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: env, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.annotations['" + key + "']",
		}}}
	}
	half := func(name, image string) corev1.Container {
		return corev1.Container{Name: name, Image: image, Env: []corev1.EnvVar{
			{Name: "A", Value: "1"},
			{Name: "IS_INJECTED", Value: "true"},
			{Name: "COLOR", Value: "blue"},
			version("SIDECARSET_VERSION", "version.sidecarset.kruise.io/"+name),
			version("SIDECARSET_VERSION_ALT", "versionalt.sidecarset.kruise.io/"+name),
		}}
	}
	sameAs(t, "one at work and one empty",
		[]corev1.Container{half("x-1", "x:1"), half("x-2", "empty:1"), pod.Spec.Containers[0]}, got.Spec.Containers)
	sameAs(t, "a native sidecar has two lives as well", []string{"mesh-1 mesh:1", "mesh-2 empty:2"},
		images(got.Spec.InitContainers))
	working := map[string]string{}
	if err := json.Unmarshal([]byte(got.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey]),
		&working); err != nil {
		t.Fatal(err)
	}
	sameAs(t, "the first is at work; another's entry stays",
		pairs("x", "x-1", "mesh", "mesh-1", "other", "other-2"), working)
	versions := map[string]string{}
	for key, value := range got.Annotations {
		if name, ok := strings.CutPrefix(key, kruise.SidecarSetVersionKeyPrefix); ok {
			versions[name] = value + " " + got.Annotations[kruise.SidecarSetVersionAltKeyPrefix+name]
		}
	}
	sameAs(t, "versions, each with that of the other",
		pairs("x-1", "1 0", "x-2", "0 1", "mesh-1", "1 0", "mesh-2", "0 1"), versions)
}

func images(containers []corev1.Container) []string {
	var all []string
	for i := range containers {
		all = append(all, containers[i].Name+" "+containers[i].Image)
	}
	return all
}
