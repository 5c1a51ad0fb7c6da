"""The variables that a user can choose at the top of the dashboard."""

from panels import DATASOURCE

# Label filter of every query, with the names of the variables below.
NODE = 'job=~"$job",instance=~"$instance"'
TENANT = NODE + ',tenant=~"$tenant"'
ADAPTER = NODE + ',adapter=~"$adapter"'
_ALL = {"selected": True, "text": ["All"], "value": ["$__all"]}


def _chosen(name, label, expression, description, **more):
    """Several values of a label, by default all of them."""
    return {"type": "query", "name": name, "label": label, "description": description, "datasource": DATASOURCE,
            "query": {"qryType": 1, "query": expression, "refId": name}, "current": _ALL, "includeAll": True,
            "multi": True, "refresh": 2, "sort": 1, "hide": 0, "options": [], "skipUrlSync": False, **more}


def _listed(kind, name, label, values, default, description, **more):
    options = [{"selected": value == default, "text": value, "value": value} for value in values]
    return {"type": kind, "name": name, "label": label, "description": description, "query": ",".join(values),
            "current": {"selected": True, "text": default, "value": default}, "options": options, "hide": 0,
            "skipUrlSync": False, **more}


def variables():
    return [
        {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "regex": "",
         "description": "The Prometheus that scrapes the daemons.", "options": [], "hide": 0,
         "current": {"selected": False, "text": "default", "value": "default"},
         "includeAll": False, "multi": False, "refresh": 1, "skipUrlSync": False},
        # "All" means the listed jobs only: other programs have up and process_ series too.
        _chosen("job", "Job", "label_values(rnicd_build_info, job)", "Name of the scrape job."),
        _chosen("instance", "Node", 'label_values(rnicd_build_info{job=~"$job"}, instance)',
                "Nodes, by the address that is scraped.", allValue=".*"),
        _chosen("tenant", "Tenant", f"label_values(rnicd_sessions{{{NODE}}}, tenant)",
                "Tenants, as rnicctl tenants shows them.", allValue=".*"),
        _chosen("adapter", "Adapter", f"label_values(rnicd_adapter_info{{{NODE}}}, adapter)",
                "Cards, as rnicctl adapters shows them.", allValue=".*"),
        _listed("custom", "topn", "Top", ("5", "10", "20"), "10", "How many series the panels of the biggest show.",
                includeAll=False, multi=False),
        _listed("interval", "interval", "Window", ("5m", "15m", "1h", "6h"), "15m",
                "The time over which panels with \"in the window\" count.",
                refresh=2),
    ]
