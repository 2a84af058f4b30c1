"""Segment logs that lose nothing silently: the storage of one broker's partitions.

``PartitionLog`` is the way in; ``LogDir`` keeps the logs of one broker. See ``storage/README.md``
for layout, formats and durability rules.
"""

from storage.batch import ControlType, Header, LogRecord, Record, RecordBatch
from storage.compaction import Compaction, compact
from storage.config import CompactionPolicy, LogConfig, LogRules
from storage.mkb1 import decode_batch, encode_batch
from storage.partition_log import PartitionLog

__all__ = [
    "Compaction",
    "CompactionPolicy",
    "ControlType",
    "Header",
    "LogConfig",
    "LogRecord",
    "LogRules",
    "PartitionLog",
    "Record",
    "RecordBatch",
    "compact",
    "decode_batch",
    "encode_batch",
]
