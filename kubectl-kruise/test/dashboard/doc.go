// Package dashboard has the test of the dashboard in a browser: Chromium follows a rollout of 300 pods in a simulated
// cluster.
//
// It is a module of its own: what drives the browser reaches neither the library nor the plugin.
package dashboard
