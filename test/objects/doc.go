// Package objects runs the production reconciler of a kind and a kubelet by turns, over the objects that package
// test/rig/apiserver holds in memory, with a clock that only the test moves.
//
//	m := objects.NewModel(t, &v1beta1.CloneSetList{}, v1beta1.AddToScheme)
//	m.Reconciler, err = cloneset.New(m.Server, cloneset.Options{Now: m.Now, Recorder: m.Server})
//	...
//	m.Eventually(func() error { ... }) // something becomes so
//	m.Still()                          // nothing is left to do
//
// Where validation, admission, watches or garbage collection matter, a test needs an API server, and package podbench.
package objects
