package rows
