"""Examples of calls that the help of each command ends with."""

ALL = """\b
Examples:
  sdckit demo
  sdckit describe data.csv
  sdckit mask data.csv -o masked.csv --method mdav --set k=5
  sdckit evaluate data.csv masked.csv --key id
  sdckit sweep data.csv -o sweep/ --grid mdav.k=2:30
  sdckit recommend data.csv --max-risk linkage=0.1 -o masked.csv
  sdckit run job.toml
  sdckit app data.csv
  sdckit replay 20260131-0123abcd data.csv -o again.csv
  sdckit paper -o paper/
"""
DEMO = """\b
Examples:
  sdckit demo
  sdckit demo -o somewhere/else
"""
DESCRIBE = """\b
Examples:
  sdckit describe data.csv
  sdckit describe data.csv --key id --weights weight --recode age=10 --drop name
  sdckit describe data.csv -o job.toml
"""
MASK = """\b
Examples:
  sdckit mask data.csv -o masked.csv --method mdav --set k=5
  sdckit mask data.csv -o masked.parquet --method noise --set percent=20 --by region --key id
  sdckit mask data.csv -o masked.csv --method rank_noise --rule 'total = wages + other'
  sdckit mask data.csv -o masked.csv --method mdav --set k=5 --key id --release --crosswalk order.csv
"""
EVALUATE = """\b
Examples:
  sdckit evaluate data.csv masked.csv
  sdckit evaluate data.csv masked.csv --key id --by region --json
  sdckit evaluate data.csv masked.csv --made-by noise --set percent=20
  sdckit evaluate data.csv masked.csv --crosswalk order.csv
  sdckit evaluate data.csv masked.csv --max-risk linkage=0.1 --max-loss brmae=0.3
  sdckit evaluate data.csv a.csv b.csv c.csv --report map.html
"""
SWEEP = """\b
Examples:
  sdckit sweep data.csv -o sweep/ --grid mdav.k=2:30
  sdckit sweep data.csv -o sweep/ --grid noise.percent=10:300:10 --grid rank_noise --replications 30
  sdckit sweep data.csv -o sweep/ --method all --report map.html
  sdckit sweep data.csv -o sweep/ --plan plan.toml --format csv
"""
RECOMMEND = """\b
Examples:
  sdckit recommend data.csv --max-risk linkage=0.1 -o masked.csv
  sdckit recommend data.csv --max-risk linkage=0.1 --max-risk linkage_outliers=0.3 \\
      --minimise brmae -o masked.csv --report report.html
"""
RUN = """\b
Examples:
  sdckit run job.toml
  sdckit run job.toml --overwrite --json
"""
APP = """\b
Examples:
  sdckit app
  sdckit app data.csv
  sdckit app data.csv --no-preview --port 8765 --no-browser
"""
SCHEMA = """\b
Examples:
  sdckit schema job
  sdckit schema evaluate
"""
REPLAY = """\b
Examples:
  sdckit releases
  sdckit replay 20260131-0123abcd data.csv -o again.csv
  sdckit replay 20260131-0123abcd data.csv -o again.csv --private record/
"""
RELEASES = """\b
Examples:
  sdckit releases
  sdckit releases --private record/ --json
"""
CHECK = """\b
Examples:
  sdckit check masked.csv
  sdckit check masked.csv --private record/
  sdckit check masked.csv data.csv
"""
PAPER = """\b
Examples:
  sdckit paper -o paper/
  sdckit paper -o paper/ --data sample --replications 3
"""
METRICS = """\b
Examples:
  sdckit metrics
  sdckit metrics brmae
  sdckit metrics --json
"""
METHODS = """\b
Examples:
  sdckit methods
  sdckit methods mdav
  sdckit methods --csv
"""
