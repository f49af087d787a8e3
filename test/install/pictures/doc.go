// Pictures records metrics of a cluster and draws the dashboards of config/monitoring from them:
//
//	go run ./pictures -for 20m -namespace NAMESPACE -name CLONESET
//
// Scraping, storage and queries are those of Prometheus. Metrics of objects come from a stand-in for
// kube-state-metrics, which reads its configuration in config/monitoring. Drawing is this package's own: the queries,
// units, legends and places are those of the dashboards, and the looks are not those of Grafana.
//
// When not to use it: to look at a cluster. Import the dashboards into Grafana.
package main
