package statefulset_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/webhooks/statefulset"
)

// spec is that of a StatefulSet of one container and one claim, in either version, changed by a merge patch.
func spec(t testing.TB, patch string) string {
	t.Helper()
	const plain = `{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},
		"spec":{"containers":[{"name":"main","image":"app:1"}]}},
		"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"fast",
			"resources":{"requests":{"storage":"1Gi"}}}}]}`
	return plaintest.Patched(t, plain, patch)
}

// plainServer is an API server that accepts templates as they are, and has some storage classes.
func plainServer(fail error) client.WithWatch {
	classes := map[string]*bool{"fast": ptr.To(true), "slow": ptr.To(false), "silent": nil}
	return interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			pod := obj.(*unstructured.Unstructured).Object["template"].(map[string]any)["spec"].(map[string]any)
			pod["dnsPolicy"] = "ClusterFirst"
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			all := list.(*storagev1.StorageClassList)
			for i, name := range []string{"slow", "fast", "silent"} { // the later the newer
				isDefault := map[string]string{"storageclass.kubernetes.io/is-default-class": strconv.FormatBool(name != "silent")}
				all.Items = append(all.Items, storagev1.StorageClass{
					AllowVolumeExpansion: classes[name],
					ObjectMeta: metav1.ObjectMeta{
						Name: name, CreationTimestamp: metav1.Unix(int64(i), 0), Annotations: isDefault,
					},
				})
			}
			return fail
		},
	})
}

// review sends a request to the webhook at a path. It is an update where there is something stored; both are patches of
// a plain spec.
func review(t *testing.T, api client.Client, o statefulset.Options, path string, c [3]string) plaintest.Answer {
	t.Helper()
	w, err := statefulset.New(api, o)
	if err != nil {
		t.Fatal(err)
	}
	object := func(patch string) string {
		if patch == "" {
			return ""
		}
		return `{"metadata":{"name":"a","namespace":"shop","uid":"1"},"spec":` + spec(t, patch) + `}`
	}
	version, stored, now := c[0], c[1], c[2]
	return w[path](t.Context(), plaintest.Request(plaintest.Kind("StatefulSet"), version, object(now), object(stored)))
}

// sized is a claim template of a size, in a class; expanding expands it.
func sized(size, class, more string) string {
	name := ""
	if class != "" {
		name = `"storageClassName":"` + class + `",`
	}
	return fmt.Sprintf(`{"volumeClaimUpdateStrategy":{"type":"OnPodRollingUpdate"},
		"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],
			%s"resources":{"requests":{"storage":"%s"}}}}%s]}`, name, size, more)
}

func TestValidate(t *testing.T) {
	expands := statefulset.Options{ExpandClaims: true}
	for name, c := range map[string]struct {
		why, version, stored, now string
		options                   statefulset.Options
		// at is the path of the fault; empty for none.
		at string
	}{
		"plain":           {"it can work", "v1beta1", "", "{}", expands, ""},
		"plain, v1alpha1": {"it can work", "v1alpha1", "", "{}", expands, ""},
		"negative ordinals": {
			"0 counts, and the reference accepts it", "v1beta1", "", `{"ordinals":{"start":-1}}`, statefulset.Options{}, "",
		},
		"negative history": {
			"0 counts, and the reference accepts it", "v1alpha1", "", `{"revisionHistoryLimit":-1}`, statefulset.Options{}, "",
		},
		"negative grace": {
			"0 counts, and the reference accepts it", "v1beta1", "",
			`{"updateStrategy":{"rollingUpdate":{"inPlaceUpdateStrategy":{"gracePeriodSeconds":-1}}}}`,
			statefulset.Options{},
			"",
		},
		"unknown claim strategy": {
			"OnDelete counts, and the reference accepts it", "v1beta1", "", `{"volumeClaimUpdateStrategy":{"type":"Never"}}`,
			expands, "",
		},
		"negative replicas": {"there are none", "v1beta1", "", `{"replicas":-1}`, statefulset.Options{}, "spec.replicas"},
		"reserved": {
			"the range is empty", "v1beta1", "", `{"reserveOrdinals":["5-2"]}`, statefulset.Options{}, "spec.reserveOrdinals[0]",
		},
		"budget": {
			"none may be unavailable", "v1alpha1", "",
			`{"podManagementPolicy":"Parallel","updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}`,
			statefulset.Options{},
			"spec.updateStrategy.rollingUpdate.maxUnavailable",
		},
		"grows":         {"the class allows it", "v1beta1", sized("1Gi", "fast", ""), sized("2Gi", "fast", ""), expands, ""},
		"grows in both": {"the class allows it", "v1beta1", "{}", sized("2Gi", "fast", ""), expands, ""},
		"does not grow": {
			"the class forbids it", "v1beta1", sized("1Gi", "slow", ""), sized("2Gi", "slow", ""), expands,
			"spec.volumeClaimTemplates[data].spec.resources",
		},
		"says nothing": {
			"nothing means no", "v1beta1", sized("1Gi", "silent", ""), sized("2Gi", "silent", ""), expands,
			"spec.volumeClaimTemplates[data].spec.resources",
		},
		"no such class": {
			"nothing can grow", "v1beta1", sized("1Gi", "gone", ""), sized("2Gi", "gone", ""), expands,
			"spec.volumeClaimTemplates[data].spec.resources",
		},
		"default class": {"the newest counts", "v1beta1", sized("1Gi", "", ""), sized("2Gi", "", ""), expands, ""},
		"gate off": {
			"no claim is expanded", "v1beta1", sized("1Gi", "slow", ""), sized("2Gi", "slow", ""), statefulset.Options{}, "",
		},
		"same size, other words": {
			"nothing changes", "v1beta1", sized("1Gi", "slow", ""), sized("1024Mi", "slow", ""), expands, "",
		},
		"another class": {
			"no claim changes its class", "v1beta1", sized("1Gi", "fast", ""), sized("1Gi", "slow", ""), expands,
			"spec.volumeClaimTemplates[data]",
		},
		"class left out": {
			"a claim without a class has the one of the template", "v1beta1", sized("1Gi", "fast", ""), sized("1Gi", "", ""),
			expands, "",
		},
		"class and type at once": {
			"the type of the update counts", "v1beta1", "{}", sized("1Gi", "slow", ""), expands,
			"spec.volumeClaimTemplates[data]",
		},
		"away and class at once": {
			"new claims have the class", "v1beta1", sized("1Gi", "fast", ""),
			strings.Replace(sized("1Gi", "slow", ""), "OnPodRollingUpdate", "OnDelete", 1), expands, "",
		},
		"the type before": {"the older version has none", "v1alpha1", "{}", `{"replicas":2}`, expands, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := review(t, plainServer(nil), c.options, statefulset.ValidatePath, [3]string{c.version, c.stored, c.now})
			want := plaintest.Want{Paths: c.at, Warnings: len(answer.Warnings)}
			if c.at != "" {
				want.Code = 422
			}
			plaintest.Answers(t, c.why, want, answer)
		})
	}
}

// An update of many claim templates costs one read of storage classes, and one of none costs none.
func TestClassesReadOnce(t *testing.T) {
	many := func(size string) string {
		var templates []string
		for i := range 50 {
			templates = append(templates, fmt.Sprintf(`{"metadata":{"name":"data-%d"},"spec":{"accessModes":["ReadWriteOnce"],
				"storageClassName":"fast","resources":{"requests":{"storage":"%s"}}}}`, i, size))
		}
		return `{"volumeClaimUpdateStrategy":{"type":"OnPodRollingUpdate"},
			"volumeClaimTemplates":[` + strings.Join(templates, ",") + `]}`
	}
	for size, want := range map[string]int{"1Gi": 0, "2Gi": 1} {
		reads := 0
		server := interceptor.NewClient(plainServer(nil), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				reads++
				return c.List(ctx, list, o...)
			},
		})
		answer := review(t, server, statefulset.Options{ExpandClaims: true}, statefulset.ValidatePath,
			[3]string{"v1beta1", many("1Gi"), many(size)})
		if plaintest.Answers(t, "to "+size, plaintest.Want{}, answer); reads != want {
			t.Errorf("to %s: %d reads, want %d", size, reads, want)
		}
	}
}

// An API server that fails leaves an update undecided.
func TestClassUnread(t *testing.T) {
	for _, class := range []string{"fast", ""} {
		plaintest.Answers(t, class, plaintest.Want{Code: 500, Text: "list storage classes: no connection"},
			review(t, plainServer(errors.New("no connection")), statefulset.Options{ExpandClaims: true},
				statefulset.ValidatePath,
				[3]string{"v1beta1", sized("1Gi", class, ""), sized("2Gi", class, "")}))
	}
}

func TestMutate(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		options statefulset.Options
		want    []string
		without []string
	}{
		"v1beta1": {
			version: "v1beta1", options: statefulset.Options{ExpandClaims: true},
			want: []string{
				`"path":"/spec/replicas","value":1`, `podManagementPolicy","value":"OrderedReady"`,
				`"whenDeleted":"Retain"`, `"path":"/spec/template/spec/dnsPolicy"`, `"phase":"Pending"`,
				`/spec/volumeClaimUpdateStrategy"`, `/imagePullPolicy"`,
			},
		},
		"gate off": {
			version: "v1beta1", options: statefulset.Options{}, want: []string{`"path":"/spec/replicas"`},
			without: []string{"volumeClaimUpdateStrategy"},
		},
		"v1alpha1": {
			version: "v1alpha1", options: statefulset.Options{ExpandClaims: true},
			want:    []string{`"path":"/spec/replicas","value":1`, `"podUpdatePolicy":"ReCreate"`},
			without: []string{"volumeClaimUpdateStrategy", "whenDeleted"},
		},
		"no defaults": {
			version: "v1beta1", options: statefulset.Options{Options: kinds.Options{TemplateNoDefaults: true}},
			want: []string{`"path":"/spec/replicas"`}, without: []string{"dnsPolicy", "phase"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := review(t, plainServer(nil), c.options, statefulset.MutatePath, [3]string{c.version, "", "{}"})
			patch := string(answer.Patch)
			for _, want := range c.want {
				if !strings.Contains(patch, want) {
					t.Errorf("no %s in %s", want, patch)
				}
			}
			for _, not := range c.without {
				if strings.Contains(patch, not) {
					t.Errorf("there is %s in %s", not, patch)
				}
			}
		})
	}
}
