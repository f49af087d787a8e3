// Package lean drops from pods what nothing reads of them in a cache, which is most of their memory: arguments, probes,
// volumes, and the variables that neither come from labels and annotations nor belong to a feature. Pods share what is
// equal of the rest.
//
//	var pods lean.Shared
//	cache.ByObject{Transform: func(o any) (any, error) {
//		if pod, is := o.(*corev1.Pod); is {
//			pods.Pod(pod)
//		}
//		return o, nil
//	}}
//
// The laws: a pod without what was dropped gives the same results in each decision about pods of a cache, and a lean
// pod stays as it is. A lean pod is no base for an update. What decides about new pods, or about what a review has,
// must not use one.
package lean
