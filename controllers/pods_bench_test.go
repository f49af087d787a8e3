package controllers

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kruisekit/kruisekit/test/objects"
)

// BenchmarkCachedPods measures what pods take in the cache of the manager, with its indexes: those of recordings, and
// those with the amounts, variables, probes and mounts of an ordinary service. docs/operations.md has the figures:
//
//	go test ./controllers -run '^$' -bench CachedPods -benchtime 20000x
func BenchmarkCachedPods(b *testing.B) {
	for name, texts := range map[string][]string{"recorded": recordedPods(b, false), "service": recordedPods(b, true)} {
		for way, transform := range map[string]func(any) (any, error){
			"lean": transformOf(b, &corev1.Pod{}), "whole": cache.TransformStripManagedFields(),
		} {
			b.Run(name+"/"+way, func(b *testing.B) {
				store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers())
				before := heap()
				for i := range b.N {
					kept, err := transform(numbered(b, texts[i%len(texts)], i))
					if err != nil {
						b.Fatal(err)
					}
					if err := store.Add(kept); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(heap()-before)/float64(b.N)/1024, "KiB/pod")
				runtime.KeepAlive(store)
			})
		}
	}
}

// indexers are like those that the reconcilers add to pods: by namespace, owner, node, and annotation.
func indexers() toolscache.Indexers {
	by := func(values func(*corev1.Pod) []string) toolscache.IndexFunc {
		return func(o any) ([]string, error) {
			pod, is := o.(*corev1.Pod)
			if !is {
				return nil, fmt.Errorf("%T is no pod", o)
			}
			var keys []string
			for _, value := range values(pod) { // as a cache of controller-runtime has them
				keys = append(keys, pod.Namespace+"/"+value, "__all_namespaces/"+value)
			}
			return keys, nil
		}
	}
	return toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
		"owner": by(func(pod *corev1.Pod) []string {
			var uids []string
			for i := range pod.OwnerReferences {
				uids = append(uids, string(pod.OwnerReferences[i].UID))
			}
			return uids
		}),
		"node": by(func(pod *corev1.Pod) []string { return []string{pod.Spec.NodeName} }),
		"sets": by(func(pod *corev1.Pod) []string {
			return strings.Split(pod.Annotations["kruise.io/sidecarset-injected-list"], ",")
		}),
	}
}

// recordedPods returns pods as JSON. Those of a service have what recordings lack.
func recordedPods(b *testing.B, service bool) []string {
	b.Helper()
	var list corev1.PodList
	objects.Recorded(b, "2-updating/pods.yaml", &list)
	var texts []string
	for i := range list.Items {
		pod := &list.Items[i]
		if service {
			serve(pod)
		}
		text, err := json.Marshal(pod)
		if err != nil {
			b.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

func serve(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		for j := range 20 {
			c.Env = append(c.Env, corev1.EnvVar{
				Name: fmt.Sprintf("SERVICE_SETTING_%d", j), Value: fmt.Sprintf("http://service-%d.example.com:8080", j),
			})
		}
		c.Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("512Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("512Mi")},
		}
		c.Args = []string{"--config=/etc/service/config.yaml", "--log-level=info", "--listen=:8080"}
		probe := &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz"}}, PeriodSeconds: 10,
		}
		c.LivenessProbe, c.ReadinessProbe = probe, probe
		for j := range 4 {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: fmt.Sprintf("volume-%d", j), MountPath: fmt.Sprintf("/var/lib/service/%d", j),
			})
		}
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Resources = &pod.Spec.Containers[0].Resources
	}
	for j := range 4 {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: fmt.Sprintf("volume-%d", j), VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{
					Name: fmt.Sprintf("config-%d", j),
				}},
			},
		})
	}
}

// numbered returns one of many pods: decoded again, with a name, a UID, and one node for thirty.
func numbered(b *testing.B, text string, i int) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(text), pod); err != nil {
		b.Fatal(err)
	}
	pod.Name, pod.UID, pod.Spec.NodeName = fmt.Sprintf("%s-%d", pod.Name, i), types.UID(fmt.Sprintf("%036d", i)),
		fmt.Sprintf("node-%d", i/30)
	pod.Namespace = fmt.Sprintf("namespace-%d", i/200)
	return pod
}
