"""Decision rules: trees and tables over named columns, in words and as code without dependencies."""
