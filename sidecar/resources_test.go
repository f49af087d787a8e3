package sidecar_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

func amounts(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	if cpu != "" {
		list[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

func limits(cpu, memory string) func(*corev1.Container) {
	return func(c *corev1.Container) { c.Resources.Limits = amounts(cpu, memory) }
}

func requests(cpu, memory string) func(*corev1.Container) {
	return func(c *corev1.Container) { c.Resources.Requests = amounts(cpu, memory) }
}

// computes is a policy with the expressions limits.cpu, limits.memory, requests.cpu and requests.memory.
func computes(mode v1beta1.TargetContainersModeType, regex string, texts ...string) containerChange {
	return func(c *v1beta1.SidecarContainer) {
		c.Resources = corev1.ResourceRequirements{Limits: amounts("7", "7"), Requests: amounts("7", "7")}
		c.ResourcesPolicy = &v1beta1.ResourcesPolicy{TargetContainersMode: mode, TargetContainersNameRegex: regex}
		if texts != nil {
			c.ResourcesPolicy.ResourcesExpr = v1beta1.ResourcesExpr{
				Limits:   &v1beta1.ResourceExprList{CPU: texts[0], Memory: texts[1]},
				Requests: &v1beta1.ResourceExprList{CPU: texts[2], Memory: texts[3]},
			}
		}
	}
}

const (
	sum     = v1beta1.TargetContainersModeSum
	largest = v1beta1.TargetContainersModeMax
)

func TestInjectResources(t *testing.T) {
	twins := []corev1.Container{
		own("a", limits("200m", "400Mi"), requests("100m", "200Mi")),
		own("b", limits("400m", "600Mi"), requests("200m", "300Mi")),
	}
	all := []string{"cpu*50% + 100m", "max(memory*20% + 100Mi, 200Mi)", "cpu*30% + 50m", "memory*15% + 50Mi"}
	cases := map[string]struct {
		why   string
		own   []corev1.Container
		inits []corev1.Container
		with  containerChange
		more  []v1beta1.SidecarContainer
		want  corev1.ResourceRequirements
		notes []string
	}{
		"sum": {
			why: "all are added", own: twins, with: computes(sum, ".*", all...),
			want: corev1.ResourceRequirements{Limits: amounts("400m", "300Mi"), Requests: amounts("140m", "125Mi")},
		},
		"max": {
			why: "the largest counts", own: twins, with: computes(largest, "", all...),
			want: corev1.ResourceRequirements{Limits: amounts("300m", "220Mi"), Requests: amounts("110m", "95Mi")},
		},
		"without limit": {
			why:   "where one has none there is none, even for a constant, and that is reported; a missing request is 0",
			own:   append([]corev1.Container{own("c", limits("", "100Mi"))}, twins...),
			with:  computes(sum, ".*", "1", "200Mi", "cpu", ""),
			want:  corev1.ResourceRequirements{Limits: amounts("", "200Mi"), Requests: amounts("300m", "")},
			notes: []string{"Unlimited s"},
		},
		"above the limit": {
			why:   "the API server will refuse the pod, which the note explains",
			own:   twins,
			with:  computes(sum, ".*", "100m", "", "cpu", ""),
			want:  corev1.ResourceRequirements{Limits: amounts("100m", ""), Requests: amounts("300m", "")},
			notes: []string{"AboveLimit s"},
		},
		"nothing is requested": {
			why: "0 is written as 0", own: []corev1.Container{own("a")}, with: computes(sum, ".*", "", "", "cpu", "memory"),
			want: corev1.ResourceRequirements{Requests: amounts("0", "0")},
		},
		"by name": {
			why:  "a part of the name is enough",
			own:  append([]corev1.Container{own("large-b")}, twins...),
			with: computes(sum, "^b", "cpu", "memory", "", ""),
			want: corev1.ResourceRequirements{Limits: amounts("400m", "600Mi")},
		},
		"what counts": {
			why: "the pod's own that keep running: no plain init container, nothing that sets declare or brought",
			own: []corev1.Container{
				own("a", limits("1", "1")), own("declared", limits("10", "10")), own("pair", limits("10", "10")),
				own("brought", limits("10", "10"), env(kruise.SidecarInjectedEnvName, "true")),
			},
			inits: []corev1.Container{
				own("plain", limits("10", "10")),
				own("mesh", limits("2", "2"), func(c *corev1.Container) {
					c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
				}),
				own("old", limits("10", "10"), env(kruise.SidecarInjectedEnvName, "true"), func(c *corev1.Container) {
					c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
				}),
			},
			with:  computes(sum, ".*", "cpu", "", "", ""),
			more:  []v1beta1.SidecarContainer{container("declared"), container("pair", hot("empty"))},
			want:  corev1.ResourceRequirements{Limits: amounts("3", "")},
			notes: []string{"ContainerReplaced z"},
		},
		"no expressions": {why: "what was there is gone all the same", own: twins, with: computes(sum, ".*")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf(c.own...)
			pod.Spec.InitContainers = c.inits
			got, notes := inject(t, pod, at(), sidecarSet("s", of(container("sidecar", c.with))), sidecarSet("z", of(c.more...)))
			sameAs(t, c.why, c.want, got.Spec.Containers[0].Resources)
			sameAs(t, "notes", c.notes, codes(notes))
		})
	}
}

// TestInjectResourcesOfNative: a native sidecar is sized as the others are.
func TestInjectResourcesOfNative(t *testing.T) {
	pod := podOf(own("a", limits("400m", "800Mi")), own("b", limits("600m", "1200Mi")))
	mesh := container("mesh", native, computes(sum, ".*", "max(cpu*30%, 50m)", "max(memory*25%, 100Mi)", "", ""))
	got, _ := inject(t, pod, at(), sidecarSet("s", ofInit(mesh)))
	sameAs(t, "limits", amounts("300m", "500Mi"), got.Spec.InitContainers[0].Resources.Limits)
}

func TestInjectResourcesRefuses(t *testing.T) {
	cases := map[string]struct {
		with containerChange
		want string
		is   error
	}{
		"no target": {
			with: computes(sum, "^x$", "cpu", "", "", ""),
			want: `container c: resourcesPolicy.targetContainersNameRegex "^x$": no container of the pod matches`,
			is:   sidecar.ErrNoTarget,
		},
		"a bad regex": {
			with: computes(sum, "(", "cpu", "", "", ""),
			want: "container c: resourcesPolicy: targetContainersNameRegex: error parsing regexp",
		},
		"a bad mode": {
			with: computes("avg", ".*", "cpu", "", "", ""),
			want: `container c: resourcesPolicy: targetContainersMode: "avg" is neither sum nor max`,
		},
		"a bad limit": {
			with: computes(sum, ".*", "", "x", "", ""), want: "container c: resourcesPolicy: compute limits.memory: at 0: ",
		},
		"bad requests": {
			with: computes(sum, ".*", "", "", "cpu-2", ""),
			want: "container c: resourcesPolicy: compute requests.cpu: expected a result of at least 0, found -2",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf(own("main", limits("1", "1")))
			_, err := sidecar.Inject(pod, parse(sidecarSet("s", of(container("c", c.with)))), at())
			if err == nil || !strings.HasPrefix(err.Error(), "sidecarset s: spec.containers[0]: "+c.want) ||
				c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("want %s, got %v", c.want, err)
			}
		})
	}
}
