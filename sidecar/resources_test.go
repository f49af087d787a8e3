package sidecar_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
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

// echo evaluates by giving back the value, and writes down what it was asked.
func echo(asked *[]string) func(string, corev1.ResourceList) (resource.Quantity, error) {
	return func(text string, given corev1.ResourceList) (resource.Quantity, error) {
		var result resource.Quantity
		for name, value := range given {
			*asked = append(*asked, fmt.Sprintf("%s with %s=%s", text, name, value.String()))
			result = value
		}
		return result, nil
	}
}

func TestInjectResources(t *testing.T) {
	twins := []corev1.Container{
		own("a", limits("200m", "400Mi"), requests("100m", "200Mi")), own("b", limits("400m", "600Mi"), requests("200m", "300Mi")),
	}
	all := []string{"cpu", "memory", "cpu", "memory"}
	cases := map[string]struct {
		why   string
		own   []corev1.Container
		inits []corev1.Container
		with  containerChange
		more  []v1beta1.SidecarContainer
		asked []string
		want  corev1.ResourceRequirements
	}{
		"sum": {
			why: "all are added", own: twins, with: computes(sum, ".*", all...),
			asked: []string{"cpu with cpu=600m", "memory with memory=1000Mi", "cpu with cpu=300m", "memory with memory=500Mi"},
			want:  corev1.ResourceRequirements{Limits: amounts("600m", "1000Mi"), Requests: amounts("300m", "500Mi")},
		},
		"max": {
			why: "the largest counts", own: twins, with: computes(largest, "", all...),
			asked: []string{"cpu with cpu=400m", "memory with memory=600Mi", "cpu with cpu=200m", "memory with memory=300Mi"},
			want:  corev1.ResourceRequirements{Limits: amounts("400m", "600Mi"), Requests: amounts("200m", "300Mi")},
		},
		"without limit": {
			why: "where one has none there is none, even for a constant; a missing request is 0",
			own: append([]corev1.Container{own("c", limits("", "100Mi"))}, twins...), with: computes(sum, ".*", "1", "200Mi", "cpu", ""),
			asked: []string{"200Mi with cpu=1100Mi", "cpu with cpu=300m"},
			want:  corev1.ResourceRequirements{Limits: amounts("", "1100Mi"), Requests: amounts("300m", "")},
		},
		"nothing is requested": {
			why: "0 is written as 0", own: []corev1.Container{own("a")}, with: computes(sum, ".*", all...),
			asked: []string{"cpu with cpu=0", "memory with memory=0"}, want: corev1.ResourceRequirements{Requests: amounts("0", "0")},
		},
		"the variable": {
			why: "it is memory only as a lower-case word of its own", own: twins, with: computes(sum, ".*", "max(memory,1)", "MEMORY", "memory2", "my_memory"),
			asked: []string{"max(memory,1) with memory=600m", "MEMORY with cpu=1000Mi", "memory2 with cpu=300m", "my_memory with cpu=500Mi"},
			want:  corev1.ResourceRequirements{Limits: amounts("600m", "1000Mi"), Requests: amounts("300m", "500Mi")},
		},
		"by name": {
			why: "a part of the name is enough", own: append([]corev1.Container{own("large-b")}, twins...), with: computes(sum, "^b", all...),
			asked: []string{"cpu with cpu=400m", "memory with memory=600Mi", "cpu with cpu=200m", "memory with memory=300Mi"},
			want:  corev1.ResourceRequirements{Limits: amounts("400m", "600Mi"), Requests: amounts("200m", "300Mi")},
		},
		"what counts": {
			why: "the pod's own that keep running: no plain init container, nothing that sets declare or brought",
			own: []corev1.Container{
				own("a", limits("1", "1")), own("declared", limits("10", "10")), own("pair", limits("10", "10")),
				own("brought", limits("10", "10"), env(pub.SidecarInjectedEnvName, "true")),
			},
			inits: []corev1.Container{
				own("plain", limits("10", "10")),
				own("mesh", limits("2", "2"), func(c *corev1.Container) { c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways) }),
			},
			with: computes(sum, ".*", "cpu", "", "", ""), more: []v1beta1.SidecarContainer{container("declared"), container("pair", hot("empty"))},
			asked: []string{"cpu with cpu=3"}, want: corev1.ResourceRequirements{Limits: amounts("3", "")},
		},
		"no expressions": {why: "what was there is gone all the same", own: twins, with: computes(sum, ".*")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf(c.own...)
			pod.Spec.InitContainers = c.inits
			var asked []string
			got, _ := inject(t, pod, sidecar.Options{Now: noon(), Evaluate: echo(&asked)}, sidecarSet("s", of(container("sidecar", c.with))), sidecarSet("z", of(c.more...)))
			sameAs(t, "asked", c.asked, asked)
			sameAs(t, c.why, c.want, got.Spec.Containers[0].Resources)
		})
	}
}

func TestInjectResourcesRefuses(t *testing.T) {
	broken := errors.New("broken")
	cases := map[string]struct {
		with containerChange
		want string
		is   error
	}{
		"no target":    {with: computes(sum, "^x$", "cpu", "", "", ""), want: `targetContainersNameRegex "^x$": no container of the pod matches`, is: sidecar.ErrNoTarget},
		"a bad regex":  {with: computes(sum, "(", "cpu", "", "", ""), want: "parse targetContainersNameRegex: error parsing regexp"},
		"a bad mode":   {with: computes("avg", ".*", "cpu", "", "", ""), want: `targetContainersMode "avg" is neither sum nor max`},
		"a bad limit":  {with: computes(sum, ".*", "", "x", "", ""), want: "compute limits: memory: broken", is: broken},
		"bad requests": {with: computes(sum, ".*", "", "", "x", ""), want: "compute requests: cpu: broken", is: broken},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := sidecar.Options{Evaluate: func(string, corev1.ResourceList) (resource.Quantity, error) { return resource.Quantity{}, broken }}
			pod := podOf(own("main", limits("1", "1")))
			_, err := sidecar.Inject(pod, []*v1beta1.SidecarSet{sidecarSet("s", of(container("c", c.with)))}, o)
			if err == nil || !strings.HasPrefix(err.Error(), "inject container c of sidecarset s: "+c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("want %s, got %v", c.want, err)
			}
		})
	}
}
