"""Tables as a laboratory has them: files and data frames become candidates, features and models."""

from alexp.table.files import FileError as FileError
from alexp.table.table import Table as Table
